// What the viewer leaves out for keyboards and screen readers: names of icons, and focus for parts that scroll.

/** Complete the parts of the viewer, those of now and those that it will add. */
export function makeReachable(viewer) {
  const complete = () => {
    for (const button of viewer.querySelectorAll("button.scalar-code-copy:not([aria-label])")) {
      button.setAttribute("aria-label", "Copy");
    }
    for (const part of viewer.querySelectorAll(":is(.custom-scroll, .endpoints, pre code):not([tabindex])")) {
      part.setAttribute("tabindex", "0");
    }
  };
  complete();
  new MutationObserver(complete).observe(viewer, { childList: true, subtree: true });
}
