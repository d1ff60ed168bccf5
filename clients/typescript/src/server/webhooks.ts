// Verification of the events that a Parley server posts to a webhook of an app (https://www.standardwebhooks.com).

import { base64, fromBase64, utf8 } from "../crypto/encodings.js";
import { hmacSha256 } from "../crypto/sha256.js";
import { ParleyError } from "../errors.js";
import type { HeadersLike } from "../http/web.js";
import { joined } from "../streams/bytes.js";

const TOLERANCE_S = 300;
const PREFIX = "whsec_";
const SECRET = /^whsec_(?=.)([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** An event of an app. It may arrive more than once, with the same `id`. */
export interface WebhookEvent {
  /** Such as `account` or `purchase`. Programs must ignore names that they do not know. */
  event: string;
  id: string;
  app_id: string;
  time: string;
  data: Record<string, unknown>;
}

/** A call of a webhook that Parley has not made, or has made too long ago. */
export class WebhookRefused extends ParleyError {
  override readonly name = "WebhookRefused";

  constructor(message: string) {
    super("webhook_refused", `webhook_refused: ${message}`);
  }
}

export type WebhookHeaders = HeadersLike | Record<string, string | string[] | undefined>;

/**
 * Return the event in a request. Throws `WebhookRefused` if it was not signed with one of the secrets, and `TypeError`
 * if one of them is empty or malformed, or if `body` was parsed.
 *
 * `body` are the bytes exactly as they have arrived. `secrets` begin with `whsec_`. While one replaces another, give
 * both.
 */
export function verifyWebhook(
  headers: WebhookHeaders,
  body: Uint8Array | string,
  secrets: string | readonly string[],
  { nowS = Date.now() / 1000 }: { nowS?: number | undefined } = {},
): WebhookEvent {
  if (typeof body !== "string" && !ArrayBuffer.isView(body)) {
    throw new TypeError("body must be the raw bytes or text, not a parsed object");
  }
  const keys = [secrets].flat().map(keyOf);
  const [id, time, signatures] = ["id", "timestamp", "signature"].map((name) => headerOf(headers, `webhook-${name}`));
  if (!id) throw new WebhookRefused("webhook-id is missing");
  if (!time || !/^\d+$/.test(time)) throw new WebhookRefused("webhook-timestamp is missing or malformed");
  if (Math.abs(nowS - Number(time)) > TOLERANCE_S) {
    throw new WebhookRefused("webhook-timestamp is too far from the time of this machine");
  }
  const bytes = typeof body === "string" ? utf8(body) : body;
  const text = joined([utf8(`${id}.${time}.`), bytes]);
  const given = (signatures ?? "").split(" ");
  const expected = keys.map((key) => `v1,${base64(hmacSha256(key, text))}`);
  const proven = expected.map((right) => given.map((one) => isEqual(right, one)).includes(true)).includes(true);
  if (!proven) throw new WebhookRefused("webhook-signature is missing or wrong");
  return JSON.parse(new TextDecoder().decode(bytes)) as WebhookEvent;
}

/** Return the key. An empty one, such as that of a setting that is missing, would accept everyone's signature. */
function keyOf(secret: string): Uint8Array {
  if (!SECRET.test(secret)) throw new TypeError(`a secret of a webhook is ${PREFIX} and a key in Base64`);
  return fromBase64(secret.slice(PREFIX.length));
}

function headerOf(headers: WebhookHeaders, name: string): string | null {
  if (typeof headers["get"] === "function") return (headers as HeadersLike).get(name);
  const found = Object.entries(headers).find(([given]) => given.toLowerCase() === name)?.[1];
  return (Array.isArray(found) ? found[0] : found) ?? null;
}

/** Compare in a time that does not depend on where the texts differ. */
function isEqual(right: string, given: string): boolean {
  let difference = right.length ^ given.length;
  for (let at = 0; at < right.length; at += 1) difference |= right.charCodeAt(at) ^ given.charCodeAt(at);
  return difference === 0;
}
