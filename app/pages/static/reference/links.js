// Links to operations: `#POST/bp/ai/conversation`, with or without the anchor of a section before it.

import { listed } from "./outline.js";

/** Let links to operations and older links lead to the operation, on load and whenever the address changes. */
export function followLinks(outline) {
  const complete = () => {
    const found = operationAt(outline, hashOf(location));
    if (found && !hashOf(location).startsWith(found.anchor)) history.replaceState({}, "", `#${found.anchor}`);
  };
  complete();
  // The viewer's own listener is added later, so it reads the complete anchor.
  addEventListener("popstate", complete);
}

/** Call `show` with the anchors of the section and of the operation that the address names now. */
export function reportWhere(outline, show) {
  // The viewer changes the address after it has told that another part is in view.
  queueMicrotask(() => {
    const hash = hashOf(location);
    const operation = operationAt(outline, hash);
    const sections = outline.flatMap((group) => group.sections);
    const section = operation?.section ?? sections.find((one) => one.anchor === hash);
    show(section?.anchor, operation?.anchor);
  });
}

function operationAt(outline, hash) {
  const tail = /(?:^|\/)((?:GET|PUT|POST|DELETE|PATCH|HEAD)\/.*)$/.exec(hash)?.[1];
  if (!tail) return undefined;
  const ending = (operation) => `${operation.method}${operation.path}`;
  const matching = listed(outline).filter((operation) => isAt(tail, ending(operation)));
  // The anchors of fields and responses begin with the anchor of their operation.
  return matching.sort((one, other) => other.path.length - one.path.length)[0];
}

function isAt(tail, ending) {
  return tail === ending || tail.startsWith(`${ending}.`) || tail.startsWith(`${ending}/responses`);
}

function hashOf(address) {
  try {
    return decodeURIComponent(address.hash.slice(1));
  } catch {
    return address.hash.slice(1);
  }
}
