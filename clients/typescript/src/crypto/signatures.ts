// `X-Service-Sign`: the signature of a request with a key of the app.

import { hex, randomId, utf8 } from "./encodings.js";
import { hmacSha256, Sha256 } from "./sha256.js";

export const SIGN_HEADER = "X-Service-Sign";

export interface SignedRequest {
  method: string;
  /** The path and the query exactly as they are sent. */
  pathAndQuery: string;
  /** The body or, of a conversation or a pronunciation assessment, the bytes of its parameters. */
  body: Uint8Array;
}

/** Return the value of `X-Service-Sign`. `timeS` are Unix seconds; the server accepts each nonce once. */
export function signRequest(
  key: string,
  { method, pathAndQuery, body }: SignedRequest,
  { timeS = Math.floor(Date.now() / 1000), nonce = randomId() }: { timeS?: number; nonce?: string | null } = {},
): string {
  const bodyHash = hex(new Sha256().update(body).digest());
  const lines = [String(timeS), nonce, method.toUpperCase(), pathAndQuery, bodyHash];
  const text = lines.filter((line) => line !== null).join("\n");
  const mac = hex(hmacSha256(utf8(key), utf8(text)));
  return [`t=${timeS}`, ...(nonce === null ? [] : [`n=${nonce}`]), `v1=${mac}`].join(",");
}
