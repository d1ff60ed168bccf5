// `X-Service-Sign`: the signature of a request with a key of the app.

import { hex, randomId, utf8 } from "./encodings.js";
import { rounded } from "../numbers.js";
import { hmacSha256, Sha256 } from "./sha256.js";

export const SIGN_HEADER = "X-Service-Sign";

export interface SignedRequest {
  method: string;
  /** The path and the query exactly as they are sent. */
  pathAndQuery: string;
  /** The body or, of a conversation or a pronunciation assessment, the bytes of its parameters. */
  body: Uint8Array;
}

export interface SignOptions {
  /** Unix seconds. By default, now. */
  timeS?: number | undefined;
  /** The server accepts each nonce once. By default, it is random. */
  nonce?: string | null | undefined;
}

/** Return the value of `X-Service-Sign`. */
export function signRequest(
  key: string,
  { method, pathAndQuery, body }: SignedRequest,
  { timeS = Math.floor(Date.now() / 1000), nonce = randomId() }: SignOptions = {},
): string {
  const bodyHash = hex(new Sha256().update(body).digest());
  const t = rounded("timeS", timeS);
  const lines = [String(t), nonce, method.toUpperCase(), pathAndQuery, bodyHash];
  const text = lines.filter((line) => line !== null).join("\n");
  const mac = hex(hmacSha256(utf8(key), utf8(text)));
  return [`t=${t}`, ...(nonce === null ? [] : [`n=${nonce}`]), `v1=${mac}`].join(",");
}
