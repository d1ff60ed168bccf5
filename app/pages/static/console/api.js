// Calls of the admin API with the cookie of the session.

import { saidOf } from "./errors.js";
import { TEXTS } from "./texts.js";

let csrf = "sign-in"; // Sign-in needs the header with any value.
let onEnd = () => {};
const OWN_401 = ["/session", "/self"]; // Both ask who is signed in, so a 401 does not end anything.

/** A response with an error. `status` is 0 if there was no response. The message is for the operator. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const useCsrf = (token) => (csrf = token ?? "sign-in");
export const whenSessionEnds = (callback) => (onEnd = callback);
export const sessionEnded = () => onEnd();

/** Calls `path` and returns the value of the response. Throws `ApiError`. */
export async function call(method, path, { body, headers, background } = {}) {
  const given = { "X-Parley-Csrf": csrf, ...(background && { "X-Parley-Background": "1" }), ...headers };
  if (body !== undefined) given["Content-Type"] = "application/json";
  const text = body === undefined ? undefined : JSON.stringify(body);
  let response, answer;
  try {
    response = await fetch(path, { method, headers: given, body: text, cache: "no-store" });
    answer = await response.text();
  } catch {
    throw new ApiError(0, TEXTS.errors.unreachable);
  }
  const value = valueOf(answer);
  if (response.ok && value !== undefined) return value;
  if (response.status === 401 && !OWN_401.some((end) => path.endsWith(end))) sessionEnded();
  const { headers: told } = response;
  throw new ApiError(response.status, saidOf(response.status, value?.error?.message, { retryAfter: told.get("Retry-After"), request: told.get("X-Request-Id") }));
}

/** Returns the value of a body, or `undefined` if it is no JSON: a proxy may answer in place of the server. */
function valueOf(text) {
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const API = "/admin/api";
export const read = (path, query, options) => call("GET", `${API}${path}${queryOf(query)}`, options);
export const write = (method, path, body, headers) => call(method, `${API}${path}`, { body, headers });
export const userPath = (app, user) => `/users/${encodeURIComponent(app)}/${encodeURIComponent(user)}`;
export const configPath = ({ app, kind, name }) => `/configs/${[app, kind, name].map(encodeURIComponent).join("/")}`;

function queryOf(query = {}) {
  const set = Object.entries(query).filter(([, value]) => value !== undefined && value !== "" && value !== null);
  return set.length ? `?${new URLSearchParams(set)}` : "";
}
