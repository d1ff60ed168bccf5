// The address of a page of the console: `#/area/part?field=value`. It holds the state of lists.

import { useLayoutEffect, useState } from "../vendor/preact.js";

export function currentRoute() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [area = "overview", ...parts] = path.split("/").filter(Boolean).map(decoded);
  return { area, parts, query: Object.fromEntries(new URLSearchParams(query)) };
}

/** Returns a part of an address, as it is if it is not well-formed. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function hrefOf(parts, query = {}) {
  const set = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const text = set.length ? `?${new URLSearchParams(set)}` : "";
  return `#/${parts.map(encodeURIComponent).join("/")}${text}`;
}

export const go = (parts, query) => (location.hash = hrefOf(parts, query));

/** The route, which changes with the address. */
export function useRoute() {
  const [route, setRoute] = useState(currentRoute());
  // In the same task as the first reading: an address that changed before an effect ran would not be noticed.
  useLayoutEffect(() => {
    const follow = () => setRoute(currentRoute());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return route;
}
