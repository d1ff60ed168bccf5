// Calls that return JSON. Those that can be repeated safely are sent again if no response has arrived.

import { ConnectionLost, notA, NotUnderstood, ParleyError } from "../errors.js";
import { randomId } from "../crypto/encodings.js";
import { leavingWith, reasonOf } from "./aborting.js";
import { Attempts, delay } from "./backoff.js";
import { jsonBody, type ApiRequest, type Caller, type RequestBody } from "./transport.js";
import type { AbortSignalLike, ResponseLike } from "./web.js";

const MAX_TRIES = 3;
const TIMEOUT_S = 30;

export interface CallOptions {
  headers?: Record<string, string>;
  body?: RequestBody;
  /** Seconds for the whole response. */
  timeoutS?: number;
  /** Whether the server may get it twice. */
  repeatable?: boolean;
}

/** Send a request and return the JSON object of its response. Throws `ParleyError`. */
export async function call<T>(
  caller: Caller,
  request: ApiRequest,
  { timeoutS = TIMEOUT_S, repeatable = false }: CallOptions = {},
): Promise<T> {
  const attempts = new Attempts(caller.backoff);
  for (let tries = 1; ; tries += 1) {
    try {
      return await within(timeoutS, request.signal, async (signal) =>
        contentOf<T>(await caller.call({ ...request, signal })),
      );
    } catch (error) {
      if (!(error instanceof ParleyError) || !repeatable || !error.retryable || tries >= MAX_TRIES) throw error;
      const ms = attempts.delayMs({ withinMs: caller.backoff.beginMs, retryAfter: error.retryAfter });
      if (ms === null) throw error;
      await delay(ms, request.signal);
    }
  }
}

export function get<T>(caller: Caller, path: string, query: ApiRequest["query"] = {}): Promise<T> {
  return call<T>(caller, { method: "GET", path, query }, { repeatable: true });
}

type Method = "POST" | "PUT" | "DELETE";

/** Send a request, with a body of JSON if one is given. */
export async function send<T>(
  caller: Caller,
  method: Method,
  path: string,
  json?: unknown,
  options?: CallOptions,
): Promise<T> {
  return call<T>(caller, { method, path, ...(json !== undefined && { body: jsonBody(json) }) }, options);
}

/** Send a request with an `Idempotency-Key`: a repeat has no further effect, and gets the first response. */
export async function sendOnce<T>(
  caller: Caller,
  method: Method,
  path: string,
  json?: unknown,
  { headers, ...options }: CallOptions = {},
): Promise<T> {
  const body = json !== undefined && { body: jsonBody(json) };
  const request = { method, path, headers: { "Idempotency-Key": randomId(), ...headers }, ...body };
  return call<T>(caller, request, { ...options, repeatable: true });
}

/** Return the JSON object of a response. An empty body is an empty object. */
export async function contentOf<T>(response: ResponseLike): Promise<T> {
  const text = await bodyOf(response);
  const content = parsed(text.trim() || "{}");
  if (typeof content === "object" && content !== null && !Array.isArray(content)) return content as T;
  throw new NotUnderstood(notA("a JSON object", response.status, text), { status: response.status });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

async function within<T>(
  timeoutS: number,
  signal: AbortSignalLike | undefined,
  work: (signal: AbortSignalLike) => Promise<T>,
): Promise<T> {
  const leaving = new AbortController();
  let late: ConnectionLost | null = null;
  const giveUp = () => leaving.abort((late = new ConnectionLost(`there was no response within ${timeoutS} s`)));
  const timer = setTimeout(giveUp, timeoutS * 1000);
  try {
    return await work(leavingWith(leaving, signal));
  } catch (error) {
    if (signal?.aborted) throw reasonOf(signal);
    throw late ?? error;
  } finally {
    clearTimeout(timer);
    leaving.abort(); // It listens to `signal` no longer.
  }
}

async function bodyOf(response: ResponseLike): Promise<string> {
  try {
    return await response.text();
  } catch (cause) {
    throw new ConnectionLost("a response broke off", cause);
  }
}
