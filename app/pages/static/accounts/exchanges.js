// The requests that the page has sent, their responses, and the equivalent curl commands.

import { quoted } from "./command.js";

const SESSION_HEADER = "X-Service-Session-Token";
const SERVER_HEADER = "X-Service-Auth-Token";
const APP_HEADER = "X-Service-App-Id";
const KEPT = 50;

/** The path at which a development server makes server tokens. */
export const SERVER_TOKEN = "/dev/server-token";

/** Sends requests and keeps them, the newest first. `onChange` is called after each change. */
export class Exchanges {
  #nextId = 1;

  constructor(app, onChange) {
    this.app = app;
    this.onChange = onChange;
    this.list = [];
  }

  /** Show exchanges of an earlier visit. */
  restore(list) {
    this.list = list.filter(({ status }) => status !== null);
    this.#nextId = 1 + Math.max(0, ...list.map(({ id }) => id));
  }

  /**
   * Send a request and return its exchange, whose `status` is 0 if there is no response.
   *
   * `request`: `{name, method, path, body, token, serverToken, proof, aside, replaces}`. `proof` is the choice at the
   * sandbox that made the body, as `{path, body}`. Requests that the page sends by itself are `aside`. `replaces` is
   * an earlier exchange of the same request.
   */
  async send(request) {
    const { replaces = null, ...sent } = request;
    const exchange = { id: replaces?.id ?? this.#nextId++, method: "POST", status: null, answer: null, ...sent };
    exchange.headers = this.headers(exchange);
    this.list = [exchange, ...this.list.filter((one) => one !== replaces)].slice(0, KEPT);
    this.onChange();
    const began = performance.now();
    try {
      const response = await fetch(exchange.path, {
        method: exchange.method,
        headers: { ...exchange.headers, ...(exchange.body ? { "Content-Type": "application/json" } : {}) },
        body: exchange.body && JSON.stringify(exchange.body),
        cache: "no-store",
      });
      const text = await response.text();
      Object.assign(exchange, { status: response.status, answer: parsed(text) });
      exchange.retryAfterS = Number(response.headers.get("Retry-After") ?? 0);
    } catch {
      exchange.status = 0;
    }
    exchange.tookMs = Math.round(performance.now() - began);
    this.onChange();
    return exchange;
  }

  headers({ token, serverToken }) {
    return {
      ...(this.app === null ? {} : { [APP_HEADER]: this.app }),
      ...(token ? { [SESSION_HEADER]: token } : {}),
      ...(serverToken ? { [SERVER_HEADER]: serverToken } : {}),
    };
  }
}

function parsed(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return text;
  }
}

export const succeeded = ({ status }) => status >= 200 && status < 300;

/** Return the outcome of an exchange as a sentence. */
export function outcome(exchange) {
  const { status, answer, done, retryAfterS } = exchange;
  if (status === null) return "Waiting for the response";
  if (status === 0) return "The server cannot be reached";
  if (!succeeded(exchange)) {
    const message = answer?.error?.message ?? `status ${status}`;
    return retryAfterS ? `${message} (retry after ${retryAfterS} s)` : message;
  }
  return done?.(answer) ?? "Done";
}

/**
 * Return the request as a curl command that works when it is pasted into a shell.
 *
 * A proof can be used once, so its command gets a new one from the sandbox first. So can a server token that pays.
 */
export function curlOf({ method, path, headers, body, proof, serverToken }) {
  if (proof) {
    return `${command({ ...proof, method: "POST", headers: {} })} |\n${command({ method, path, headers }, "-d @-")}`;
  }
  const before = serverToken ? `${newToken(headers[APP_HEADER])}\n` : "";
  return before + command({ method, path, headers }, body && `-d ${quoted(JSON.stringify(body))}`);
}

/** Return the command that sets a variable of the shell to a new server token. */
function newToken(app = "default") {
  const token = command({ method: "POST", path: SERVER_TOKEN, headers: {}, body: { app } });
  return `SERVER=$(${token} |\n  sed 's/.*"token": *"\\([^"]*\\)".*/\\1/')`;
}

function command({ method, path, headers, body }, data = body && `-d ${quoted(JSON.stringify(body))}`) {
  const isDefault = method === (data ? "POST" : "GET");
  const lines = [`curl -s ${isDefault ? "" : `-X ${method} `}${quoted(new URL(path, location.href).href)}`];
  for (const [name, value] of Object.entries(headers)) {
    lines.push(`-H ${name === SERVER_HEADER ? `"${name}: $SERVER"` : quoted(`${name}: ${value}`)}`);
  }
  if (data) lines.push(data);
  return lines.join(" \\\n  ");
}
