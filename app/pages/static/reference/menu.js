// The button in the bar that opens the contents on narrow screens.

/** Let the button open the contents. A link, Escape and the button close them. */
export function openContents(nav) {
  const menu = document.querySelector(".tools .menu");
  const setOpen = (isOpen) => {
    document.body.classList.toggle("contents-open", isOpen);
    menu.setAttribute("aria-expanded", String(isOpen));
  };
  menu.addEventListener("click", () => setOpen(menu.getAttribute("aria-expanded") !== "true"));
  addEventListener("keydown", (event) => event.key === "Escape" && setOpen(false));
  nav.addEventListener("click", (event) => event.target.closest("a") && setOpen(false));
}
