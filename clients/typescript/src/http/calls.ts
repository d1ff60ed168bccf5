// Calls that return JSON. Those that can be repeated safely are sent again if no response has arrived.

import { ConnectionLost, NotUnderstood, ParleyError } from "../errors.js";
import { randomId } from "../crypto/encodings.js";
import { Attempts, delay } from "./backoff.js";
import { jsonBody, type ApiRequest, type Caller } from "./transport.js";

const MAX_TRIES = 3;

export function get<T>(caller: Caller, path: string, query: ApiRequest["query"] = {}): Promise<T> {
  return repeated<T>(caller, { method: "GET", path, query });
}

/** Send a request with a body of JSON, once. */
export async function send<T>(
  caller: Caller,
  method: "POST" | "PUT" | "DELETE",
  path: string,
  json?: unknown,
): Promise<T> {
  const response = await caller.call({ method, path, ...(json !== undefined && { body: jsonBody(json) }) });
  return contentOf<T>(response);
}

/** Send a request with an `Idempotency-Key`, so that a repeat has no further effect and gets the first response. */
export function sendOnce<T>(caller: Caller, method: "POST" | "DELETE", path: string, json?: unknown): Promise<T> {
  const headers = { "Idempotency-Key": randomId() };
  return repeated<T>(caller, { method, path, headers, ...(json !== undefined && { body: jsonBody(json) }) });
}

/** Return the JSON of a response, or undefined if it is empty. */
export async function contentOf<T>(response: Response): Promise<T> {
  const text = await bodyOf(response);
  if (text === "") return undefined as T;
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new NotUnderstood(`a response is not JSON: ${(cause as Error).message}`, { status: response.status });
  }
}

async function repeated<T>(caller: Caller, request: ApiRequest): Promise<T> {
  const attempts = new Attempts(caller.backoff);
  for (let tries = 1; ; tries += 1) {
    try {
      return await contentOf<T>(await caller.call(request));
    } catch (error) {
      if (!(error instanceof ParleyError) || !error.retryable || tries >= MAX_TRIES) throw error;
      const ms = attempts.delayMs({ withinMs: caller.backoff.beginMs, retryAfter: error.retryAfter });
      if (ms === null) throw error;
      await delay(ms);
    }
  }
}

async function bodyOf(response: Response): Promise<string> {
  try {
    return await response.text();
  } catch (cause) {
    throw new ConnectionLost("a response broke off", cause);
  }
}
