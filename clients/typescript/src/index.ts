// The client of Parley for apps. App servers import `parley-client/server`.

export type * from "./api.js";
export type { DeviceFields, SignInInfo, SignInPlatform, SignUpInfo, SignUpPlatform } from "./accounts/sign_in.js";
export { ParleyClient, type ClientOptions } from "./client.js";
export { signRequest, SIGN_HEADER, type SignedRequest, type SignOptions } from "./crypto/signatures.js";
export { ConnectionLost, DigestMismatch, NotUnderstood, ParleyError } from "./errors.js";
export type { Backoff, BackoffOptions } from "./http/backoff.js";
export type { Session, SessionStore } from "./http/session_caller.js";
export type { AbortSignalLike, ByteStream, Fetch, FetchOptions, HeadersLike, ResponseLike } from "./http/web.js";
export type { AudioEvent, ConversationEvent, SpeechEvent, StreamEvent } from "./streams/events.js";
export type { Pieces } from "./streams/input.js";
export { SseParser, type Message } from "./streams/sse.js";
export type { AssessOptions } from "./streams/assessment.js";
export { Speech, type SpeakOptions } from "./streams/speech.js";
export type { ConnectionState, OnConnection } from "./streams/event_stream.js";
export { Turn, type ConverseOptions, type ReadOptions } from "./streams/turn.js";
export { User, type HistoryOptions } from "./user.js";
