// When a request is repeated: exponential backoff with jitter, and never earlier than the server asks for.

import { reasonOf } from "./aborting.js";
import type { AbortSignalLike, HeadersLike } from "./web.js";

/** The delays between attempts, in milliseconds. */
export interface Backoff {
  firstMs: number;
  longestMs: number;
  /** A request without a response, or to which the server says that it is busy, is repeated for this long. */
  beginMs: number;
  /** A stream that makes no progress is resumed for this long. It can be read for 120 s after its end. */
  resumeMs: number;
}

export type BackoffOptions = { [Name in keyof Backoff]?: Backoff[Name] | undefined };

const BACKOFF: Backoff = { firstMs: 400, longestMs: 8_000, beginMs: 20_000, resumeMs: 150_000 };

/** Return the delays, which are those by default unless others are given. */
export function backoffOf(given: BackoffOptions = {}): Backoff {
  const found = Object.entries(given).filter(([, ms]) => ms !== undefined);
  return { ...BACKOFF, ...(Object.fromEntries(found) as Partial<Backoff>) };
}

const MAX_RETRY_AFTER_S = 86_400;
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** Return the seconds after which a server wants the request to be repeated, at most a day. Null: it has not said. */
export function retryAfterOf(headers: HeadersLike): number | null {
  const value = headers.get("Retry-After") ?? "";
  // Pages may read `Date` of their own origin only. Clocks of clients are often wrong, so the server's is better.
  const seconds = /^\d+$/.test(value) ? Number(value) : (timeOf(value) - (timeOf(headers.get("Date")) || Date.now())) / 1000;
  return Number.isNaN(seconds) ? null : Math.min(Math.max(seconds, 0), MAX_RETRY_AFTER_S);
}

function timeOf(value: string | null): number {
  return value !== null && HTTP_DATE.test(value) ? Date.parse(value) : NaN; // `Date.parse` also reads words as dates.
}

/** Counts the failed attempts since the last progress, and says how long to wait before the next one. */
export class Attempts {
  readonly #backoff: Backoff;
  #tries = 0;
  #failingSince: number | null = null;

  constructor(backoff: Backoff) {
    this.#backoff = backoff;
  }

  progress(): void {
    this.#tries = 0;
    this.#failingSince = null;
  }

  /** Return the delay before the next attempt. Null: attempts would have failed for longer than `withinMs`. */
  delayMs({ withinMs, retryAfter }: { withinMs: number; retryAfter: number | null }): number | null {
    const now = performance.now();
    this.#failingSince ??= now;
    const longest = Math.min(this.#backoff.longestMs, this.#backoff.firstMs * 2 ** this.#tries);
    const ms = Math.max(longest * (0.5 + Math.random() / 2), (retryAfter ?? 0) * 1000);
    this.#tries += 1;
    return now + ms - this.#failingSince <= withinMs ? ms : null;
  }
}

/** Resolve after `ms` milliseconds. Rejects with the reason of `signal` as soon as it is aborted. */
export function delay(ms: number, signal?: AbortSignalLike): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(reasonOf(signal));
    const abort = () => {
      clearTimeout(timer);
      reject(reasonOf(signal!));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}
