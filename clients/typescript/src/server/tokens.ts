// Server tokens: short-lived JWTs (RFC 7519) by which an app server proves who it is.

import { createPrivateKey, sign } from "node:crypto";
import { base64Url, randomId, utf8 } from "../crypto/encodings.js";
import { hmacSha256 } from "../crypto/sha256.js";
import { rounded } from "../numbers.js";

const LIFETIME_S = 60;
const HASHES = { EdDSA: null, ES256: "sha256", RS256: "sha256" } as const;

/** A key of the app server, as registered in the field `server_keys` of the config `auth`. */
export interface ServerKey {
  kid: string;
  alg: "HS256" | keyof typeof HASHES;
  /** The secret of HS256. Of other algorithms, the private key (PKCS#8 in PEM). */
  key: string;
}

export interface TokenOptions {
  /** The only user that the token may be used for. By default, any user. */
  userId?: string | null | undefined;
  /** Scopes of endpoints, separated by spaces. By default, all. */
  scope?: string | null | undefined;
  /** `server_audience` of the config `auth`, if it is set. */
  audience?: string | undefined;
  lifetimeS?: number | undefined;
  /** The current time in Unix seconds. */
  nowS?: number | undefined;
  /** The id of the token, which the server accepts once. */
  jti?: string | undefined;
}

/** Return a token that is valid for one call within a minute. */
export function serverToken(
  key: ServerKey,
  appId: string,
  {
    userId,
    scope,
    audience = "parley",
    lifetimeS = LIFETIME_S,
    nowS = Math.floor(Date.now() / 1000),
    jti = randomId(),
  }: TokenOptions = {},
): string {
  const optional = { ...(userId && { sub: userId }), ...(scope && { scope }) };
  const iat = rounded("nowS", nowS);
  const claims = { iss: appId, aud: audience, iat, exp: iat + rounded("lifetimeS", lifetimeS), jti, ...optional };
  const text = `${part({ alg: key.alg, kid: key.kid, typ: "JWT" })}.${part(claims)}`;
  return `${text}.${base64Url(signature(key, utf8(text)))}`;
}

function signature({ alg, key }: ServerKey, data: Uint8Array): Uint8Array {
  if (alg === "HS256") return hmacSha256(utf8(key), data);
  return sign(HASHES[alg], data, { key: createPrivateKey(key), dsaEncoding: "ieee-p1363" });
}

function part(value: unknown): string {
  return base64Url(utf8(JSON.stringify(value)));
}
