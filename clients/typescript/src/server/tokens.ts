// Server tokens: short-lived JWTs (RFC 7519) by which an app server proves who it is.

import { createPrivateKey, sign } from "node:crypto";
import { base64Url, randomId, utf8 } from "../crypto/encodings.js";
import { hmacSha256 } from "../crypto/sha256.js";

const LIFETIME_S = 60;
const HASHES = { EdDSA: null, ES256: "sha256", RS256: "sha256" } as const;

/** A key of the app server, as registered in the field `server_keys` of the config `auth`. */
export type ServerKey =
  | { kid: string; alg: "HS256"; secret: string }
  | { kid: string; alg: keyof typeof HASHES; /** PKCS#8 in PEM. */ privateKey: string };

export interface TokenOptions {
  appId: string;
  /** The only user that the token may be used for. By default, any user. */
  userId?: string | null;
  /** Scopes of endpoints, separated by spaces. By default, all. */
  scope?: string | null;
  /** By default, that of servers that set no other `server_audience`. */
  audience?: string;
}

/** Return a token that is valid for one call within a minute. */
export function serverToken(key: ServerKey, { appId, userId, scope, audience = "parley" }: TokenOptions): string {
  const nowS = Math.floor(Date.now() / 1000);
  const claims = {
    iss: appId,
    aud: audience,
    iat: nowS,
    exp: nowS + LIFETIME_S,
    jti: randomId(),
    ...(userId && { sub: userId }),
    ...(scope && { scope }),
  };
  const text = `${part({ alg: key.alg, kid: key.kid, typ: "JWT" })}.${part(claims)}`;
  return `${text}.${base64Url(signature(key, utf8(text)))}`;
}

function signature(key: ServerKey, data: Uint8Array): Uint8Array {
  if (key.alg === "HS256") return hmacSha256(utf8(key.secret), data);
  return sign(HASHES[key.alg], data, { key: createPrivateKey(key.privateKey), dsaEncoding: "ieee-p1363" });
}

function part(value: unknown): string {
  return base64Url(utf8(JSON.stringify(value)));
}
