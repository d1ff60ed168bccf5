// The client of Parley for app servers, in Node.

export { ConnectionLost, DigestMismatch, NotUnderstood, ParleyError } from "../errors.js";
export { ServerClient, type ServerOptions } from "./client.js";
export { serverToken, type ServerKey, type TokenOptions } from "./tokens.js";
export { ServerUser, type PaymentIntentOptions, type WithdrawOptions } from "./user.js";
export { verifyWebhook, WebhookRefused, type WebhookEvent, type WebhookHeaders } from "./webhooks.js";
