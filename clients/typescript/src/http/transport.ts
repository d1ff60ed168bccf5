// One HTTP request: its URL, headers and body. Error responses and lost connections become exceptions.

import type { SignedRequest } from "../crypto/signatures.js";
import { utf8 } from "../crypto/encodings.js";
import { ConnectionLost, errorOf } from "../errors.js";
import { reasonOf } from "./aborting.js";
import { finite } from "../numbers.js";
import type { Backoff } from "./backoff.js";
import { BaseUrl, pathAndQuery, type Query } from "./urls.js";
import type { AbortSignalLike, ByteStream, Fetch, FetchOptions, ResponseLike } from "./web.js";

const API_VERSION = "1";

export interface RequestBody {
  contentType: string;
  /** The bytes that the signature covers. */
  signed: Uint8Array;
  /** Whether a part of the body is still to be sent. Only given if sending it may take long. */
  isUnsent?(): boolean;
  /** Return the bytes to send. Called for each attempt to send the request. */
  open(): Promise<Uint8Array> | Uint8Array | ByteStream;
}

export interface ApiRequest {
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** A path of the client interface, such as `/bp/user/me`. */
  path: string;
  query?: Query | undefined;
  headers?: Record<string, string> | undefined;
  body?: RequestBody | undefined;
  signal?: AbortSignalLike | undefined;
}

/** Sends the requests of one user: with a session, or as an app server. */
export interface Caller {
  /** Whether a request body can be sent while it is still being made. */
  readonly canUploadLive: boolean;
  readonly backoff: Backoff;
  /** Send a request. Throws `ParleyError` for an error response, and `ConnectionLost` if there is none. */
  call(request: ApiRequest): Promise<ResponseLike>;
}

/** Returns the headers that authenticate a request. */
export type Authorize = (request: SignedRequest) => Record<string, string> | Promise<Record<string, string>>;

export class Transport {
  readonly #base: BaseUrl;
  readonly #appId: string;
  readonly #fetch: Fetch;

  constructor(baseUrl: string, appId: string, fetch?: Fetch) {
    this.#base = new BaseUrl(baseUrl);
    this.#appId = appId;
    this.#fetch = fetch ?? ((url, options) => globalThis.fetch(url, options));
  }

  async send({ method, path, query, headers, body, signal }: ApiRequest, authorize: Authorize): Promise<ResponseLike> {
    const target = this.#base.prefix + pathAndQuery(path, query);
    const signed = body?.signed ?? new Uint8Array();
    const authentication = await authorize({ method, pathAndQuery: target, body: signed });
    const content = await body?.open();
    const isStream = content !== undefined && !(content instanceof Uint8Array); // Some environments have no streams.
    const options: FetchOptions = {
      method,
      headers: {
        "X-Service-App-Id": this.#appId,
        "X-Service-Api-Version": API_VERSION,
        ...(body && { "Content-Type": body.contentType }),
        ...headers,
        ...authentication,
      },
      cache: "no-store",
      redirect: "manual", // Another host must not get the session.
      ...(content && { body: content }),
      ...(signal && { signal }),
      ...(isStream && { duplex: "half" as const }),
    };
    let response: ResponseLike;
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

export function jsonBytes(value: unknown): Uint8Array {
  return utf8(JSON.stringify(value, finite));
}

export function jsonBody(value: unknown): RequestBody {
  const bytes = jsonBytes(value);
  return { contentType: "application/json", signed: bytes, open: () => bytes };
}
