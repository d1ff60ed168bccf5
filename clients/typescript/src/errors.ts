// The errors of this package. Each is a `ParleyError`, whose `errorType` says what is wrong.

import type { BpAuthView } from "./api.js";
import { retryAfterOf } from "./http/backoff.js";
import type { ResponseLike } from "./http/web.js";

const BUSY = new Set([429, 503]);
const SHOWN_CHARS = 60;

export interface ErrorFields {
  status?: number | null | undefined;
  extra?: Record<string, unknown> | null | undefined;
  requestId?: string | null | undefined;
  retryAfter?: number | null | undefined;
  bpAuth?: BpAuthView | null | undefined;
  cause?: unknown;
}

/**
 * An error that the server has reported, in a response or as the last event of a stream.
 *
 * `message` is the server's: `<error_type>: <what is wrong>`.
 */
export class ParleyError extends Error {
  override readonly name: string = "ParleyError";
  /** With underscores, in responses as in events: `backend_unavailable`. */
  readonly errorType: string;
  /** The HTTP status. Null: the error is an event of a stream, or there was no response. */
  readonly status: number | null;
  readonly extra: Record<string, unknown>;
  /** The server's logs have it, so support can find the request. */
  readonly requestId: string | null;
  /** Seconds after which to repeat the request, at most a day, if the server has named them. */
  readonly retryAfter: number | null;
  /** Signs in the user to whom the identity in the request belongs. */
  readonly bpAuth: BpAuthView | null;

  constructor(errorType: string, message: string, fields: ErrorFields = {}) {
    super(message, { cause: fields.cause });
    this.errorType = errorType.replaceAll(" ", "_");
    this.status = fields.status ?? null;
    this.extra = fields.extra ?? {};
    this.requestId = fields.requestId ?? null;
    this.retryAfter = fields.retryAfter ?? null;
    this.bpAuth = fields.bpAuth ?? null;
  }

  /** Whether the same request may succeed later. */
  get retryable(): boolean {
    const said = this.extra["retryable"];
    if (typeof said === "boolean") return said;
    return BUSY.has(this.status ?? 0) || this.retryAfter !== null;
  }
}

/** There was no response, or it broke off, and repeating the request has not helped. */
export class ConnectionLost extends ParleyError {
  override readonly name = "ConnectionLost";

  constructor(message: string, cause?: unknown) {
    super("connection_lost", `connection_lost: ${message}`, { cause });
  }

  override get retryable(): boolean {
    return true;
  }
}

/** What has arrived is not what a Parley server sends. The address may be that of something else. */
export class NotUnderstood extends ParleyError {
  override readonly name = "NotUnderstood";

  constructor(message: string, fields: ErrorFields = {}) {
    super("not_understood", `not_understood: ${message}`, fields);
  }
}

/** The text and audio of a stream are not what the server has sent: something is missing, repeated or altered. */
export class DigestMismatch extends ParleyError {
  override readonly name = "DigestMismatch";
  /** The last event, whose digest differs. */
  readonly end: { id: number; name: string; content: unknown; timestamp: number };

  constructor(streamId: string | null, end: DigestMismatch["end"]) {
    super("digest_mismatch", `digest_mismatch: stream ${streamId} did not arrive as it was sent`);
    this.end = end;
  }
}

/** Return the error of an argument that cannot be sent. */
export function invalidParameter(why: string): ParleyError {
  return new ParleyError("invalid_parameter", `invalid_parameter: ${why}`);
}

interface Envelope {
  error?: { error_type?: unknown; message?: unknown; extra?: Record<string, unknown> };
  bp_auth?: BpAuthView;
}

/** Return the error of an error response. */
export async function errorOf(response: ResponseLike): Promise<ParleyError> {
  const text = await response.text().catch(() => "");
  const envelope = parsed(text);
  const error = envelope?.error;
  const fields = {
    status: response.status,
    requestId: response.headers.get("X-Request-Id"),
    retryAfter: retryAfterOf(response.headers),
  };
  if (typeof error?.error_type !== "string" || typeof error.message !== "string") {
    return new NotUnderstood(faultOf(response, text), fields);
  }
  return new ParleyError(error.error_type, error.message, { ...fields, extra: error.extra, bpAuth: envelope?.bp_auth });
}

function faultOf(response: ResponseLike, text: string): string {
  const { status, type } = response;
  if (type === "opaqueredirect") return "a redirect is not followed, and browsers do not tell its status";
  if (status >= 300 && status < 400) {
    const location = JSON.stringify(response.headers.get("Location") ?? "");
    return `status ${status} is a redirect to ${location}, which is not followed`;
  }
  return notA("an error of Parley", status, text);
}

/** Return what is wrong with a body. */
export function notA(expected: string, status: number, text: string): string {
  return `status ${status} with a body that is not ${expected}: ${JSON.stringify(text.slice(0, SHOWN_CHARS))}`;
}

function parsed(text: string): Envelope | null {
  try {
    return JSON.parse(text) as Envelope | null;
  } catch {
    return null;
  }
}
