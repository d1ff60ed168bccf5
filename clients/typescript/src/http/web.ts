// What the client needs of `fetch`, as types of its own: those of browsers, Node and React Native differ from each
// other, and a project may have none of them.

/** An `AbortSignal`. Those of React Native have no `reason`. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  readonly reason?: unknown;
  addEventListener(type: "abort", listener: () => void, options?: any): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** A `ReadableStream` of bytes. */
export interface ByteStream {
  getReader(): { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }> };
}

/** The `Headers` of a request or a response. */
export interface HeadersLike {
  get(name: string): string | null;
}

/** A `Response`. Without a `body`, it can be read when it is complete. */
export interface ResponseLike {
  readonly ok: boolean;
  readonly status: number;
  readonly type?: string | undefined;
  readonly headers: HeadersLike;
  readonly body?: ByteStream | null | undefined;
  text(): Promise<string>;
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** The options that the client gives to `fetch`. */
export interface FetchOptions {
  method: string;
  headers: Record<string, string>;
  /** A `Uint8Array` or a `ReadableStream`. */
  body?: any;
  cache: "no-store";
  redirect: "manual";
  /** An `AbortSignal`. */
  signal?: any;
  /** Given if the body is a stream. */
  duplex?: "half" | undefined;
}

/** That of browsers and Node, of `undici`, and of `expo/fetch` are such functions. */
export type Fetch = (url: string, options: FetchOptions) => Promise<ResponseLike>;
