// URLs, built such that they are sent exactly as they were signed: no part is left for `fetch` to encode.

import { invalidParameter } from "../errors.js";
import { finite } from "../numbers.js";

export type Query = Record<string, string | number | boolean | null | undefined>;

/** Return the path and the query. Parameters that are null or undefined are left out. */
export function pathAndQuery(path: string, query: Query = {}): string {
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${encoded(name)}=${encoded(String(finite(name, value)))}`);
  return pairs.length > 0 ? `${path}?${pairs.join("&")}` : path;
}

/** Return an id as one segment of a path. Throws `ParleyError` for those that would make it another path. */
export function segment(id: string): string {
  if (typeof id !== "string" || ["", ".", ".."].includes(id)) {
    throw invalidParameter('an id must be a text other than "", "." and ".."');
  }
  return encoded(id);
}

function encoded(value: string): string {
  const code = (letter: string) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(value).replace(/[!'()*]/g, code);
}

/** The address of a server, and the path that the server may have behind it. */
export class BaseUrl {
  readonly origin: string;
  readonly prefix: string;

  constructor(url: string) {
    const parts = /^(https?:\/\/[^\s/?#@\\]+)(\/[^\s?#]*)?$/i.exec(url);
    if (parts === null) throw new TypeError(`base URL must be like https://parley.example.com, and not ${url}`);
    this.origin = parts[1]!;
    this.prefix = (parts[2] ?? "").replace(/\/+$/, "");
  }
}
