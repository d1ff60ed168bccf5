// What the viewer leaves out: names of icons, focus for parts that scroll, and places where long names may break.

/** Numbers of characters that may not fit into a line of a phone, and of a desktop. */
const LONG = 34;
const LONGEST = 46;

/** Complete the parts of the viewer, those of now and those that it will add. */
export function makeReachable(viewer) {
  const complete = () => {
    for (const button of viewer.querySelectorAll("button.scalar-code-copy:not([aria-label])")) {
      button.setAttribute("aria-label", "Copy");
    }
    for (const part of viewer.querySelectorAll(":is(.custom-scroll, .endpoints, pre code, .markdown table):not([tabindex])")) {
      part.setAttribute("tabindex", "0");
    }
    for (const name of viewer.querySelectorAll(".markdown :is(li, p) code:not(.long)")) {
      if (name.textContent.length > LONG) makeBreakable(name);
    }
  };
  complete();
  new MutationObserver(complete).observe(viewer, { childList: true, subtree: true });
}

function makeBreakable(name) {
  name.classList.add("long");
  if (name.textContent.length > LONGEST) name.classList.add("longest");
  const parts = name.textContent.split(/(?<=[_/])/);
  name.replaceChildren(...parts.flatMap((part) => [part, document.createElement("wbr")]));
}
