// The events and errors of a stream, which the document lists in a description, below the parameters and the body.

/** Move the lists below the body of each operation in `viewer`, now and whenever the viewer adds one. */
export function moveStreamLists(viewer) {
  const move = () => {
    for (const first of viewer.querySelectorAll(".operation-description > .markdown > h4:first-of-type")) place(first);
  };
  move();
  new MutationObserver(move).observe(viewer, { childList: true, subtree: true });
}

function place(first) {
  const description = first.parentElement;
  const details = description.closest(".operation-layout").querySelector(".operation-details");
  if (!details) return;
  details.querySelector(":scope > .stream-lists")?.remove();
  const lists = description.cloneNode(false);
  lists.classList.add("stream-lists");
  const children = [...description.children];
  lists.append(...children.slice(children.indexOf(first)));
  details.insertBefore(lists, details.querySelector(":scope > :has(> .responses-list--tree)"));
}
