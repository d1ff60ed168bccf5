// One HTTP request: its URL, headers and body. Error responses and lost connections become exceptions.

import type { SignedRequest } from "../crypto/signatures.js";
import { utf8 } from "../crypto/encodings.js";
import { ConnectionLost, errorOf } from "../errors.js";
import { reasonOf } from "./aborting.js";
import type { Backoff } from "./backoff.js";
import { BaseUrl, pathAndQuery, type Query } from "./urls.js";

const API_VERSION = "1";

export type Fetch = (url: string, options: RequestInit) => Promise<Response>;

export interface RequestBody {
  contentType: string;
  /** The bytes that the signature covers. */
  signed: Uint8Array;
  /** Whether a part of the body is still to be sent. Only given if sending it may take long. */
  isUnsent?(): boolean;
  /** Return the bytes to send. Called for each attempt to send the request. */
  open(): Promise<Uint8Array> | Uint8Array | ReadableStream<Uint8Array>;
}

export interface ApiRequest {
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** A path of the client interface, such as `/bp/user/me`. */
  path: string;
  query?: Query;
  headers?: Record<string, string>;
  body?: RequestBody;
  signal?: AbortSignal | undefined;
}

/** Sends the requests of one user: with a session, or as an app server. */
export interface Caller {
  /** Whether a request body can be sent while it is still being made. */
  readonly canUploadLive: boolean;
  readonly backoff: Backoff;
  /** Send a request. Throws `ParleyError` for an error response, and `ConnectionLost` if there is none. */
  call(request: ApiRequest): Promise<Response>;
}

/** Returns the headers that authenticate a request. */
export type Authorize = (request: SignedRequest) => Record<string, string> | Promise<Record<string, string>>;

export class Transport {
  readonly #base: BaseUrl;
  readonly #appId: string;
  readonly #fetch: Fetch;

  constructor(baseUrl: string, appId: string, fetch: Fetch = (url, options) => globalThis.fetch(url, options)) {
    this.#base = new BaseUrl(baseUrl);
    this.#appId = appId;
    this.#fetch = fetch;
  }

  async send({ method, path, query, headers, body, signal }: ApiRequest, authorize: Authorize): Promise<Response> {
    const target = this.#base.prefix + pathAndQuery(path, query);
    const signed = body?.signed ?? new Uint8Array();
    const authentication = await authorize({ method, pathAndQuery: target, body: signed });
    const content = (await body?.open()) ?? null;
    const isStream = content !== null && !(content instanceof Uint8Array); // Some environments have no streams.
    const options: RequestInit & { duplex?: "half" } = {
      method,
      headers: {
        "X-Service-App-Id": this.#appId,
        "X-Service-Api-Version": API_VERSION,
        ...(body && { "Content-Type": body.contentType }),
        ...headers,
        ...authentication,
      },
      body: content as BodyInit | null,
      cache: "no-store",
      redirect: "manual", // Another host must not get the session.
      signal: signal ?? null,
      ...(isStream && { duplex: "half" as const }),
    };
    let response: Response;
    try {
      response = await this.#fetch(this.#base.origin + target, options);
    } catch (cause) {
      if (signal?.aborted) throw reasonOf(signal);
      throw new ConnectionLost(`no response from ${this.#base.origin}`, cause);
    }
    if (!response.ok) throw await errorOf(response);
    return response;
  }
}

export function jsonBody(value: unknown): RequestBody {
  const bytes = utf8(JSON.stringify(value));
  return { contentType: "application/json", signed: bytes, open: () => bytes };
}
