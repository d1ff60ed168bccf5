// How loud somebody is at this moment, as the custom property `--level` of an element: from 0 to 1.

import { useEffect, useRef } from "../vendor/preact.js";

const EASE_MS = 60; // time constant: after this time, 63% of a movement is done

/** Return a ref for the element. `read` returns the level; it is only called while `moves` is true. */
export function useLevel(moves, read) {
  const element = useRef(null);
  const now = useRef(read);
  now.current = read;
  useEffect(() => (moves ? follow(element.current, now) : undefined), [moves]);
  return element;
}

/** Draw the level in each frame. Return a function that stops it. */
function follow(element, now) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return undefined;
  let shown = 0;
  let last = performance.now();
  let frame = 0;
  const step = (time) => {
    shown += (now.current() - shown) * (1 - Math.exp(Math.min(0, last - time) / EASE_MS)); // A frame may begin before `last`.
    last = time;
    element.style.setProperty("--level", shown.toFixed(3));
    frame = requestAnimationFrame(step);
  };
  frame = requestAnimationFrame(step);
  return () => {
    cancelAnimationFrame(frame);
    element.style.removeProperty("--level");
  };
}
