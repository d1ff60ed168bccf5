// src/http/aborting.ts
function reasonOf(signal) {
  return signal.reason ?? Object.assign(new Error("the request was aborted"), { name: "AbortError" });
}
function leavingWith(leaving, signal) {
  const abort = () => leaving.abort(signal?.reason);
  if (signal?.aborted) abort();
  else signal?.addEventListener("abort", abort, { once: true, signal: leaving.signal });
  return leaving.signal;
}

// src/http/backoff.ts
var BACKOFF = { firstMs: 400, longestMs: 8e3, beginMs: 2e4, resumeMs: 15e4 };
function backoffOf(given = {}) {
  const found = Object.entries(given).filter(([, ms]) => ms !== void 0);
  return { ...BACKOFF, ...Object.fromEntries(found) };
}
var MAX_RETRY_AFTER_S = 86400;
var HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;
function retryAfterOf(headers) {
  const value = headers.get("Retry-After") ?? "";
  const seconds = /^\d+$/.test(value) ? Number(value) : (timeOf(value) - (timeOf(headers.get("Date")) || Date.now())) / 1e3;
  return Number.isNaN(seconds) ? null : Math.min(Math.max(seconds, 0), MAX_RETRY_AFTER_S);
}
function timeOf(value) {
  return value !== null && HTTP_DATE.test(value) ? Date.parse(value) : NaN;
}
var Attempts = class {
  #backoff;
  #tries = 0;
  #failingSince = null;
  constructor(backoff) {
    this.#backoff = backoff;
  }
  progress() {
    this.#tries = 0;
    this.#failingSince = null;
  }
  /** Return the delay before the next attempt. Null: attempts would have failed for longer than `withinMs`. */
  delayMs({ withinMs, retryAfter }) {
    const now = performance.now();
    this.#failingSince ??= now;
    const longest = Math.min(this.#backoff.longestMs, this.#backoff.firstMs * 2 ** this.#tries);
    const ms = Math.max(longest * (0.5 + Math.random() / 2), (retryAfter ?? 0) * 1e3);
    this.#tries += 1;
    return now + ms - this.#failingSince <= withinMs ? ms : null;
  }
};
function delay(ms, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(reasonOf(signal));
    const abort = () => {
      clearTimeout(timer);
      reject(reasonOf(signal));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

// src/errors.ts
var BUSY = /* @__PURE__ */ new Set([429, 503]);
var SHOWN_CHARS = 60;
var ParleyError = class extends Error {
  name = "ParleyError";
  /** With underscores, in responses as in events: `backend_unavailable`. */
  errorType;
  /** The HTTP status. Null: the error is an event of a stream, or there was no response. */
  status;
  extra;
  /** The server's logs have it, so support can find the request. */
  requestId;
  /** Seconds after which to repeat the request, at most a day, if the server has named them. */
  retryAfter;
  /** Signs in the user to whom the identity in the request belongs. */
  bpAuth;
  constructor(errorType, message, fields = {}) {
    super(message, { cause: fields.cause });
    this.errorType = errorType.replaceAll(" ", "_");
    this.status = fields.status ?? null;
    this.extra = fields.extra ?? {};
    this.requestId = fields.requestId ?? null;
    this.retryAfter = fields.retryAfter ?? null;
    this.bpAuth = fields.bpAuth ?? null;
  }
  /** Whether the same request may succeed later. */
  get retryable() {
    const said = this.extra["retryable"];
    if (typeof said === "boolean") return said;
    return BUSY.has(this.status ?? 0) || this.retryAfter !== null;
  }
};
var ConnectionLost = class extends ParleyError {
  name = "ConnectionLost";
  constructor(message, cause) {
    super("connection_lost", `connection_lost: ${message}`, { cause });
  }
  get retryable() {
    return true;
  }
};
var NotUnderstood = class extends ParleyError {
  name = "NotUnderstood";
  constructor(message, fields = {}) {
    super("not_understood", `not_understood: ${message}`, fields);
  }
};
var DigestMismatch = class extends ParleyError {
  name = "DigestMismatch";
  /** The last event, whose digest differs. */
  end;
  constructor(streamId, end) {
    super("digest_mismatch", `digest_mismatch: stream ${streamId} did not arrive as it was sent`);
    this.end = end;
  }
};
function invalidParameter(why) {
  return new ParleyError("invalid_parameter", `invalid_parameter: ${why}`);
}
async function errorOf(response) {
  const text = await response.text().catch(() => "");
  const envelope = parsed(text);
  const error = envelope?.error;
  const fields = {
    status: response.status,
    requestId: response.headers.get("X-Request-Id"),
    retryAfter: retryAfterOf(response.headers)
  };
  if (typeof error?.error_type !== "string" || typeof error.message !== "string") {
    return new NotUnderstood(faultOf(response, text), fields);
  }
  return new ParleyError(error.error_type, error.message, { ...fields, extra: error.extra, bpAuth: envelope?.bp_auth });
}
function faultOf(response, text) {
  const { status, type } = response;
  if (type === "opaqueredirect") return "a redirect is not followed, and browsers do not tell its status";
  if (status >= 300 && status < 400) {
    const location = JSON.stringify(response.headers.get("Location") ?? "");
    return `status ${status} is a redirect to ${location}, which is not followed`;
  }
  return notA("an error of Parley", status, text);
}
function notA(expected, status, text) {
  return `status ${status} with a body that is not ${expected}: ${JSON.stringify(text.slice(0, SHOWN_CHARS))}`;
}
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// src/crypto/encodings.ts
var RANDOM_BYTES = 16;
function utf8(text) {
  return new TextEncoder().encode(text);
}
function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
function base64(bytes) {
  let letters = "";
  for (let position = 0; position < bytes.length; position += 32768) {
    letters += String.fromCharCode(...bytes.subarray(position, position + 32768));
  }
  return btoa(letters);
}
function fromBase64(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}
function randomId() {
  if (!globalThis.crypto?.getRandomValues) {
    throw new Error("crypto.getRandomValues is missing: in React Native, import react-native-get-random-values first");
  }
  return hex(crypto.getRandomValues(new Uint8Array(RANDOM_BYTES)));
}

// src/numbers.ts
function rounded(name, value) {
  if (!(finite(name, value) >= 0)) throw invalidParameter(`${name} must not be negative`);
  return Math.round(value);
}
function finite(name, value) {
  if (typeof value === "number" && !Number.isFinite(value)) throw invalidParameter(`${name} must be a finite number`);
  return value;
}

// src/http/urls.ts
function pathAndQuery(path, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== null && value !== void 0).map(([name, value]) => `${encoded(name)}=${encoded(String(finite(name, value)))}`);
  return pairs.length > 0 ? `${path}?${pairs.join("&")}` : path;
}
function segment(id) {
  if (typeof id !== "string" || ["", ".", ".."].includes(id)) {
    throw invalidParameter('an id must be a text other than "", "." and ".."');
  }
  return encoded(id);
}
function encoded(value) {
  const code = (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(value).replace(/[!'()*]/g, code);
}
var BaseUrl = class {
  origin;
  prefix;
  constructor(url) {
    const parts = /^(https?:\/\/[^\s/?#@\\]+)(\/[^\s?#]*)?$/i.exec(url);
    if (parts === null) throw new TypeError(`base URL must be like https://parley.example.com, and not ${url}`);
    this.origin = parts[1];
    this.prefix = (parts[2] ?? "").replace(/\/+$/, "");
  }
};

// src/http/transport.ts
var API_VERSION = "1";
var Transport = class {
  #base;
  #appId;
  #fetch;
  constructor(baseUrl, appId, fetch2) {
    this.#base = new BaseUrl(baseUrl);
    this.#appId = appId;
    this.#fetch = fetch2 ?? ((url, options) => globalThis.fetch(url, options));
  }
  async send({ method, path, query, headers, body, signal }, authorize) {
    const target = this.#base.prefix + pathAndQuery(path, query);
    const signed = body?.signed ?? new Uint8Array();
    const authentication = await authorize({ method, pathAndQuery: target, body: signed });
    const content = await body?.open();
    const isStream = content !== void 0 && !(content instanceof Uint8Array);
    const options = {
      method,
      headers: {
        "X-Service-App-Id": this.#appId,
        "X-Service-Api-Version": API_VERSION,
        ...body && { "Content-Type": body.contentType },
        ...headers,
        ...authentication
      },
      cache: "no-store",
      redirect: "manual",
      // Another host must not get the session.
      ...content && { body: content },
      ...signal && { signal },
      ...isStream && { duplex: "half" }
    };
    let response;
    try {
      response = await this.#fetch(this.#base.origin + target, options);
    } catch (cause) {
      if (signal?.aborted) throw reasonOf(signal);
      throw new ConnectionLost(`no response from ${this.#base.origin}`, cause);
    }
    if (!response.ok) throw await errorOf(response);
    return response;
  }
};
function jsonBytes(value) {
  return utf8(JSON.stringify(value, finite));
}
function jsonBody(value) {
  const bytes = jsonBytes(value);
  return { contentType: "application/json", signed: bytes, open: () => bytes };
}

// src/http/calls.ts
var MAX_TRIES = 3;
var TIMEOUT_S = 30;
async function call(caller, request, { timeoutS = TIMEOUT_S, repeatable = false } = {}) {
  const attempts = new Attempts(caller.backoff);
  for (let tries = 1; ; tries += 1) {
    try {
      return await within(
        timeoutS,
        request.signal,
        async (signal) => contentOf(await caller.call({ ...request, signal }))
      );
    } catch (error) {
      if (!(error instanceof ParleyError) || !repeatable || !error.retryable || tries >= MAX_TRIES) throw error;
      const ms = attempts.delayMs({ withinMs: caller.backoff.beginMs, retryAfter: error.retryAfter });
      if (ms === null) throw error;
      await delay(ms, request.signal);
    }
  }
}
function get(caller, path, query = {}) {
  return call(caller, { method: "GET", path, query }, { repeatable: true });
}
async function send(caller, method, path, json, options) {
  return call(caller, { method, path, ...json !== void 0 && { body: jsonBody(json) } }, options);
}
async function sendOnce(caller, method, path, json, { headers, ...options } = {}) {
  const body = json !== void 0 && { body: jsonBody(json) };
  const request = { method, path, headers: { "Idempotency-Key": randomId(), ...headers }, ...body };
  return call(caller, request, { ...options, repeatable: true });
}
async function contentOf(response) {
  const text = await bodyOf(response);
  const content = parsed2(text.trim() || "{}");
  if (typeof content === "object" && content !== null && !Array.isArray(content)) return content;
  throw new NotUnderstood(notA("a JSON object", response.status, text), { status: response.status });
}
function parsed2(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
async function within(timeoutS, signal, work) {
  const leaving = new AbortController();
  let late = null;
  const giveUp = () => leaving.abort(late = new ConnectionLost(`there was no response within ${timeoutS} s`));
  const timer = setTimeout(giveUp, timeoutS * 1e3);
  try {
    return await work(leavingWith(leaving, signal));
  } catch (error) {
    if (signal?.aborted) throw reasonOf(signal);
    throw late ?? error;
  } finally {
    clearTimeout(timer);
    leaving.abort();
  }
}
async function bodyOf(response) {
  try {
    return await response.text();
  } catch (cause) {
    throw new ConnectionLost("a response broke off", cause);
  }
}

// src/areas/account.ts
var ME = "/bp/user/me";
var UserAccount = class {
  constructor(caller) {
    this.caller = caller;
  }
  caller;
  /** Bind an identity at a third party. If it belongs to another user, the error's `bpAuth` signs in that user. */
  async bind(platform, info, fields = {}) {
    const body = { ...fields, [platform]: info };
    return (await send(this.caller, "POST", `${ME}/socialaccount`, body)).social_account;
  }
  async unbind(platform, id) {
    return send(this.caller, "DELETE", `${ME}/socialaccount/${segment(platform)}/${segment(id)}`);
  }
  /** Replace the token of an identity, which `social_network_a` supports. */
  async reauthorize(id, info) {
    const path = `${ME}/socialaccount/social_network_a/${segment(id)}`;
    return (await send(this.caller, "PUT", path, { social_network_a: info })).social_account;
  }
  async sessions() {
    return (await get(this.caller, `${ME}/sessions`)).sessions;
  }
  async endSession(sessionId) {
    return send(this.caller, "DELETE", `${ME}/sessions/${segment(sessionId)}`);
  }
  /** Freeze the account until it is deactivated. Keep the session: no new one can be obtained. */
  deactivate() {
    return send(this.caller, "POST", `${ME}/deactivate`, void 0, { repeatable: true });
  }
  recover() {
    return send(this.caller, "POST", `${ME}/deactivate/recover`);
  }
  /** Deactivate the account now. */
  confirmDeactivation() {
    return send(this.caller, "POST", `${ME}/deactivate/confirm`);
  }
};
var Account = class extends UserAccount {
  /** `signedOut` sends the calls that need no session. */
  constructor(caller, signedOut) {
    super(caller);
    this.signedOut = signedOut;
  }
  signedOut;
  /** Send the code for `signIn("email_code", …)`, or for a sign-up. */
  sendEmailCode(email, { platform, type = "login_email", customVariables = {} }) {
    const body = { email, platform, type, custom_variables: customVariables };
    return send(this.signedOut, "POST", "/bp/user/send_email_verify_code", body);
  }
  /** Send the code for `signIn("phone", …)`. */
  sendPhoneCode(phoneNumber, { platform } = {}) {
    return send(this.signedOut, "POST", "/bp/user/send_phone_verify_code", { phone_number: phoneNumber, platform });
  }
  async emailExists(email) {
    return (await send(this.signedOut, "POST", "/bp/user/detect", { email })).email_data.exists;
  }
  /** Send an email with the `randomCode` of `resetPassword`, if there is an account. */
  forgotPassword(email, { platform }) {
    return send(this.signedOut, "POST", "/bp/user/email/forgot_password", { email, platform });
  }
  resetPassword(randomCode, password, { email } = {}) {
    return send(this.signedOut, "POST", "/bp/user/email/reset_password", { random_code: randomCode, password, email });
  }
  /** Change the password. All other sessions of the user end. */
  changePassword(old, password) {
    return send(this.caller, "PUT", `${ME}/password`, { origin_password: old, password });
  }
  /** Bind an address. `next_mail_s` is given if the email that verifies it can only be sent later. */
  bindEmail(email, { platform, verifyCode }) {
    return send(this.caller, "POST", `${ME}/email`, { email, platform, verify_code: verifyCode });
  }
  changeEmail(email, { platform }) {
    return send(this.caller, "PUT", `${ME}/email`, { email, platform });
  }
  unbindEmail() {
    return send(this.caller, "DELETE", `${ME}/email`);
  }
  async emailVerified() {
    return (await get(this.caller, `${ME}/email/verify_result`)).verify_result.verified;
  }
  /** Send the link that verifies the address once more. */
  sendVerifyLink({ platform }) {
    return send(this.caller, "POST", `${ME}/email/send_verify_code`, { platform });
  }
  /** The profiles of the bound identities, which are fetched after a sign-in. */
  async profiles() {
    return (await get(this.caller, `${ME}/social_profiles`)).social_profiles;
  }
};

// src/areas/cards.ts
var SUBSCRIPTIONS = "/bp/asset/cardpay_sub";
var Cards = class {
  constructor(caller) {
    this.caller = caller;
  }
  caller;
  /** Begin to save a card. The app completes it with the `client_secret`, at the platform. */
  async createSetupIntent(intent = {}) {
    const path = "/bp/asset/cardpay_setup_intent";
    return (await sendOnce(this.caller, "POST", path, intent)).cardpay_setup_intent;
  }
  /** Subscribe with a card that the user has saved, or with that of a confirmed setup intent. */
  subscribe(subscription) {
    return sendOnce(this.caller, "POST", SUBSCRIPTIONS, subscription);
  }
  /** Return a subscription as the platform has it, and grant what it has paid for. */
  async subscription(subscriptionId) {
    return get(this.caller, `${SUBSCRIPTIONS}/${segment(subscriptionId)}`);
  }
  /** Cancel a subscription. It lasts until the end of the period that is paid. */
  async cancel(subscriptionId) {
    return sendOnce(this.caller, "DELETE", `${SUBSCRIPTIONS}/${segment(subscriptionId)}`);
  }
};

// src/areas/sharing.ts
var Sharing = class {
  constructor(caller) {
    this.caller = caller;
  }
  caller;
  /** The code with which others join the asset that lasts longest. `quota`: how many may join. */
  code({ quota } = {}) {
    return sendOnce(this.caller, "POST", "/bp/asset/share_group/code", { share_code_quota: quota });
  }
  /** Join the subscription of another user. Return what this user has now. */
  async join(shareCode) {
    const body = { share_code: shareCode };
    return (await sendOnce(this.caller, "POST", "/bp/asset/share_group/join", body)).assets;
  }
};

// src/areas/wallet.ts
var ORDERS = "/bp/asset/walletpay";
var SUBSCRIPTIONS2 = "/bp/asset/walletpay_sub";
var Wallet = class {
  constructor(caller) {
    this.caller = caller;
  }
  caller;
  async createOrder(productId, { countryCode } = {}) {
    const body = { product_id: productId, country_code: countryCode };
    return (await sendOnce(this.caller, "POST", `${ORDERS}/create`, body)).walletpay_order;
  }
  /** Take the payment that the user has approved. */
  async captureOrder(orderId) {
    const body = { order_id: orderId };
    return (await sendOnce(this.caller, "POST", `${ORDERS}/capture`, body)).walletpay_order;
  }
  /** Return an order as the platform has it, and grant what it has paid for. */
  async syncOrder(orderId) {
    return get(this.caller, `${ORDERS}/sync/${segment(orderId)}`);
  }
  /** Return an order as the platform has it, without granting anything. */
  async fetchOrder(orderId) {
    return get(this.caller, `${ORDERS}/${segment(orderId)}/fetch`);
  }
  subscribe(productId, { countryCode, returnUrl, cancelUrl } = {}) {
    const urls = { return_url: returnUrl, cancel_url: cancelUrl };
    const body = { product_id: productId, country_code: countryCode, ...urls };
    return sendOnce(this.caller, "POST", SUBSCRIPTIONS2, body);
  }
  /** Return a subscription as the platform has it, and grant what it has paid for. */
  async syncSubscription(subscriptionId) {
    return get(this.caller, `${SUBSCRIPTIONS2}/${segment(subscriptionId)}/sync`);
  }
  /** Return a subscription with its next payment, without granting anything. */
  async fetchSubscription(subscriptionId) {
    return get(this.caller, `${SUBSCRIPTIONS2}/${segment(subscriptionId)}/fetch`);
  }
  /** Begin an upgrade. Its subscription has another id. */
  async upgrade(subscriptionId, newProductId) {
    const body = { new_bp_product_id: newProductId };
    return sendOnce(this.caller, "POST", `${SUBSCRIPTIONS2}/${segment(subscriptionId)}/upgrade`, body);
  }
  /** Return the subscription of an upgrade after its approval, and grant what it has paid for. */
  async syncUpgrade(subscriptionId) {
    return get(this.caller, `${SUBSCRIPTIONS2}/${segment(subscriptionId)}/sync_upgrade`);
  }
};

// src/http/live.ts
var PROTOCOLS = /* @__PURE__ */ new Set(["h2", "h3"]);
function readsWhileSending() {
  const { process, Deno } = globalThis;
  return Boolean(process?.versions?.node || Deno);
}
function canUploadLive(origin) {
  if (readsWhileSending()) return true;
  const { navigator: navigator2, location } = globalThis;
  if (navigator2?.product === "ReactNative" || location?.origin !== origin) return false;
  const [page] = performance.getEntriesByType("navigation");
  return PROTOCOLS.has(page?.nextHopProtocol ?? "") && supportsStreams(origin);
}
function supportsStreams(origin) {
  let duplexRead = false;
  const options = {
    method: "POST",
    body: new ReadableStream(),
    get duplex() {
      duplexRead = true;
      return "half";
    }
  };
  return !new Request(origin, options).headers.has("Content-Type") && duplexRead;
}

// src/crypto/sha256.ts
var BLOCK_BYTES = 64;
var CONSTANTS = new Uint32Array([
  1116352408,
  1899447441,
  3049323471,
  3921009573,
  961987163,
  1508970993,
  2453635748,
  2870763221,
  3624381080,
  310598401,
  607225278,
  1426881987,
  1925078388,
  2162078206,
  2614888103,
  3248222580,
  3835390401,
  4022224774,
  264347078,
  604807628,
  770255983,
  1249150122,
  1555081692,
  1996064986,
  2554220882,
  2821834349,
  2952996808,
  3210313671,
  3336571891,
  3584528711,
  113926993,
  338241895,
  666307205,
  773529912,
  1294757372,
  1396182291,
  1695183700,
  1986661051,
  2177026350,
  2456956037,
  2730485921,
  2820302411,
  3259730800,
  3345764771,
  3516065817,
  3600352804,
  4094571909,
  275423344,
  430227734,
  506948616,
  659060556,
  883997877,
  958139571,
  1322822218,
  1537002063,
  1747873779,
  1955562222,
  2024104815,
  2227730452,
  2361852424,
  2428436474,
  2756734187,
  3204031479,
  3329325298
]);
var Sha256 = class {
  #state = new Uint32Array([
    1779033703,
    3144134277,
    1013904242,
    2773480762,
    1359893119,
    2600822924,
    528734635,
    1541459225
  ]);
  #block = new Uint8Array(BLOCK_BYTES);
  #filled = 0;
  #bytes = 0;
  #words = new Uint32Array(BLOCK_BYTES);
  update(data) {
    this.#bytes += data.length;
    for (let position = 0; position < data.length; ) {
      const piece = data.subarray(position, position + BLOCK_BYTES - this.#filled);
      this.#block.set(piece, this.#filled);
      this.#filled += piece.length;
      position += piece.length;
      if (this.#filled === BLOCK_BYTES) this.#compress();
    }
    return this;
  }
  /** Return the hash. The object cannot be used after that. */
  digest() {
    const bits = this.#bytes * 8;
    this.update(Uint8Array.of(128));
    while (this.#filled !== BLOCK_BYTES - 8) this.update(Uint8Array.of(0));
    const length = new DataView(new ArrayBuffer(8));
    length.setUint32(0, Math.floor(bits / 2 ** 32));
    length.setUint32(4, bits >>> 0);
    this.update(new Uint8Array(length.buffer));
    const hash = new DataView(new ArrayBuffer(32));
    this.#state.forEach((word, index) => hash.setUint32(index * 4, word));
    return new Uint8Array(hash.buffer);
  }
  #compress() {
    const words = this.#words;
    const block = new DataView(this.#block.buffer);
    for (let i = 0; i < 16; i += 1) words[i] = block.getUint32(i * 4);
    for (let i = 16; i < 64; i += 1) {
      const [early, late] = [words[i - 15], words[i - 2]];
      const s0 = rotate(early, 7) ^ rotate(early, 18) ^ early >>> 3;
      const s1 = rotate(late, 17) ^ rotate(late, 19) ^ late >>> 10;
      words[i] = words[i - 16] + s0 + words[i - 7] + s1;
    }
    let [a, b, c, d, e, f, g, h] = this.#state;
    for (let i = 0; i < 64; i += 1) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      const t1 = h + s1 + (e & f ^ ~e & g) + CONSTANTS[i] + words[i] | 0;
      const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      const t2 = s0 + (a & b ^ a & c ^ b & c) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, d + t1 | 0, c, b, a, t1 + t2 | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((word, index) => this.#state[index] += word);
    this.#filled = 0;
  }
};
function hmacSha256(key, data) {
  const padded = new Uint8Array(BLOCK_BYTES);
  padded.set(key.length > BLOCK_BYTES ? new Sha256().update(key).digest() : key);
  const inner = new Sha256().update(padded.map((byte) => byte ^ 54)).update(data).digest();
  return new Sha256().update(padded.map((byte) => byte ^ 92)).update(inner).digest();
}
function rotate(word, bits) {
  return word >>> bits | word << 32 - bits;
}

// src/crypto/signatures.ts
var SIGN_HEADER = "X-Service-Sign";
function signRequest(key, { method, pathAndQuery: pathAndQuery2, body }, { timeS = Math.floor(Date.now() / 1e3), nonce = randomId() } = {}) {
  const bodyHash = hex(new Sha256().update(body).digest());
  const t = rounded("timeS", timeS);
  const lines = [String(t), nonce, method.toUpperCase(), pathAndQuery2, bodyHash];
  const text = lines.filter((line) => line !== null).join("\n");
  const mac = hex(hmacSha256(utf8(key), utf8(text)));
  return [`t=${t}`, ...nonce === null ? [] : [`n=${nonce}`], `v1=${mac}`].join(",");
}

// src/http/session_caller.ts
var SESSION_HEADER = "X-Service-Session-Token";
var SessionCaller = class {
  canUploadLive;
  backoff;
  /** Sends requests that need no session, such as logins. */
  signedOut;
  /** Sends requests that do not renew the session. */
  withoutRenewal;
  /** Makes a new session. By default, by the token of the last sign-in. */
  signInAgain = () => this.#signInWithToken();
  #transport;
  #options;
  #session;
  #loaded = null;
  #renewal = null;
  constructor(transport, options) {
    const { canUploadLive: canUploadLive2, backoff } = options;
    this.#transport = transport;
    this.#options = options;
    this.#session = options.session;
    this.canUploadLive = canUploadLive2;
    this.backoff = backoff;
    const common = { canUploadLive: canUploadLive2, backoff };
    this.signedOut = { ...common, call: (request) => this.#send(request, null) };
    this.withoutRenewal = { ...common, call: async (request) => this.#send(request, await this.session()) };
  }
  /** The session, which is read from the store when it is first needed. */
  async session() {
    this.#loaded ??= this.#load();
    await this.#loaded;
    return this.#session;
  }
  async keep(session) {
    this.#loaded = Promise.resolve();
    this.#session = session;
    await this.#options.store?.save(session);
  }
  /** Keep the session of the response to a login or a sign-up. Return the user. */
  async enter({ user, bp_auth }) {
    if (!user?.session) throw new NotUnderstood("the response to a login has no session");
    await this.keep({ uid: user.uid, token: user.session.session_token, bpAuth: bp_auth ?? null });
    return user;
  }
  async call(request) {
    const used = await this.session();
    try {
      return await this.#send(request, used);
    } catch (error) {
      if (!(error instanceof ParleyError) || error.errorType !== "account.invalid_session") throw error;
      const renewed = this.#session !== null && this.#session.token !== used?.token;
      if (!renewed && !await this.renew()) throw error;
    }
    return this.#send(request, this.#session);
  }
  /** Make a new session. Return whether that was possible. Calls at the same time share one renewal. */
  renew() {
    this.#renewal ??= this.#renew().finally(() => this.#renewal = null);
    return this.#renewal;
  }
  async #renew() {
    const before = await this.session();
    const stored = await this.#options.store?.load() ?? null;
    if (stored !== null && stored.token !== before?.token) this.#session = stored;
    else await this.signInAgain();
    return this.#session !== null && this.#session.token !== before?.token;
  }
  async #signInWithToken() {
    const session = this.#session;
    const bpAuth = session?.bpAuth;
    if (!session || !bpAuth || bpAuth.expire_at_ms <= Date.now()) return;
    const body = jsonBody({ bp_auth_token: bpAuth.bp_auth_token });
    try {
      const response = await this.signedOut.call({ method: "POST", path: "/bp/user/login", body });
      await this.enter(await contentOf(response));
    } catch (error) {
      const refused2 = error instanceof ParleyError && !error.retryable;
      if (refused2) await this.keep({ ...session, bpAuth: null });
      throw error;
    }
  }
  async #load() {
    this.#session ??= await this.#options.store?.load() ?? null;
  }
  #send(request, session) {
    const { signKey } = this.#options;
    return this.#transport.send(request, (signed) => ({
      ...session && { [SESSION_HEADER]: session.token },
      ...signKey !== null && { [SIGN_HEADER]: signRequest(signKey, signed) }
    }));
  }
};

// src/areas/images.ts
var LONGEST_WAIT_S = 300;
var MARGIN_S = 30;
var Images = class {
  constructor(caller) {
    this.caller = caller;
  }
  caller;
  /** Begin an image task. A task that fails is no error: its `status` is `failed`. */
  async imagine(strategy, data, { type = "imagine", imageUrl, waitS = 0 } = {}) {
    const wait = Math.min(rounded("waitS", waitS), LONGEST_WAIT_S);
    const body = { strategy, type, data, image_url: imageUrl };
    const headers = wait > 0 ? { Prefer: `wait=${wait}` } : {};
    return sendOnce(this.caller, "POST", "/bp/ai/imagine", body, { headers, timeoutS: wait + MARGIN_S });
  }
  async read(taskId) {
    return get(this.caller, `/bp/ai/imagine/${segment(taskId)}`);
  }
};

// src/areas/leaderboards.ts
var Leaderboards = class {
  constructor(caller) {
    this.caller = caller;
  }
  caller;
  /** Store the user's score, in place of the one before. */
  async upload(name, score, { extra } = {}) {
    const body = { name, data: { score, ...extra && { extra } } };
    const reply = await send(this.caller, "POST", "/bp/leaderboard/data", body, { repeatable: true });
    return reply.leaderboard[0];
  }
  async query(name, { first = 1, last = 10, around } = {}) {
    const body = { name, from: first, to: last, around };
    const reply = await send(this.caller, "POST", "/bp/leaderboard", body, { repeatable: true });
    return reply.leaderboard;
  }
};

// src/areas/mail.ts
var Mail = class {
  constructor(caller) {
    this.caller = caller;
  }
  caller;
  /** Send the user an email by the strategy `name`. */
  async send(name, { emailTo, customVariables } = {}) {
    const body = { name, email_to: emailTo, custom_variables: customVariables };
    await sendOnce(this.caller, "POST", "/bp/user/me/mail_hub/send", body);
  }
};

// src/areas/predictions.ts
var PREDICTION_S = 310;
var UPLOAD_S = 120;
var Predictions = class {
  constructor(caller) {
    this.caller = caller;
  }
  caller;
  /** Make a prediction and wait for its end, for up to five minutes. */
  create(strategy, version, input = {}) {
    const body = { strategy, version, input };
    return send(this.caller, "POST", "/bp/ai/prediction", body, { timeoutS: PREDICTION_S });
  }
  /**
   * Begin a prediction, to be read with its `id`.
   *
   * `data` goes to the host: `input`, and without a `model` the `version`.
   */
  begin(strategy, data, { model } = {}) {
    const body = { strategy, module: model === void 0 ? "prediction" : "model", model, data };
    return sendOnce(this.caller, "POST", "/bp/ai/async/modelhub", body);
  }
  async read(predictionId) {
    return get(this.caller, `/bp/ai/async/modelhub/${segment(predictionId)}`);
  }
  /** Upload a file for the input of a prediction, and return its URL. */
  async upload(file) {
    const body = { contentType: "application/octet-stream", signed: file, open: () => file };
    const request = { method: "PUT", path: "/bp/ai/upload", body };
    return (await call(this.caller, request, { timeoutS: UPLOAD_S })).url;
  }
};

// src/streams/bytes.ts
function joined(pieces) {
  const bytes = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let filled = 0;
  for (const piece of pieces) {
    bytes.set(piece, filled);
    filled += piece.length;
  }
  return bytes;
}

// src/streams/input.ts
var Input = class {
  #pieces = [];
  #source;
  #reading = null;
  #onFailure;
  #onClosed = () => {
  };
  #closed = new Promise((resolve) => this.#onClosed = resolve);
  #ended = false;
  #failure = null;
  /** `onFailure` is called with the error that the source has thrown. */
  constructor(source2, onFailure) {
    this.#source = source2;
    this.#onFailure = onFailure;
  }
  /** Return piece number `position`, or null after the last one. */
  async piece(position) {
    while (position >= this.#pieces.length) {
      if (this.#failure) throw this.#failure.error;
      if (this.#ended) return null;
      this.#reading ??= this.#read().finally(() => this.#reading = null);
      await Promise.race([this.#reading, this.#closed]);
    }
    return this.#pieces[position];
  }
  /** Stop reading from the source. */
  close() {
    if (this.#ended) return;
    this.#ended = true;
    this.#onClosed();
    void Promise.resolve(this.#source.return?.()).catch(() => {
    });
  }
  async #read() {
    try {
      const { done, value } = await this.#source.next();
      if (done) this.#ended = true;
      else this.#pieces.push(value);
    } catch (error) {
      this.#failure = { error };
      this.#onFailure(error);
    }
  }
};
function inputBody(parameters, input, { live }) {
  const signed = jsonBytes(parameters);
  let unsent = true;
  const streamed = () => {
    unsent = true;
    return streamOf(signed, input, () => unsent = false);
  };
  const open = () => live ? streamed() : complete(signed, input);
  return { contentType: "application/octet-stream", signed, isUnsent: () => live && unsent, open };
}
async function* encodedText(source2) {
  for await (const piece of typeof source2 === "string" ? [source2] : source2) {
    if (typeof piece !== "string") throw new TypeError("a piece of text must be a string");
    yield utf8(piece);
  }
}
async function* encodedAudio(source2) {
  let rest = new Uint8Array();
  for await (const piece of source2 instanceof Uint8Array ? [source2] : source2) {
    if (!(piece instanceof Uint8Array)) throw new TypeError("a piece of audio must be a Uint8Array");
    const bytes = joined([rest, piece]);
    const whole = bytes.length - bytes.length % 3;
    rest = bytes.slice(whole);
    if (whole > 0) yield utf8(base64(bytes.subarray(0, whole)));
  }
  if (rest.length > 0) yield utf8(base64(rest));
}
function streamOf(head, input, onEnd) {
  let position = -1;
  return new ReadableStream({
    async pull(controller) {
      const piece = position < 0 ? head : await input.piece(position);
      position += 1;
      if (piece !== null) return controller.enqueue(piece);
      onEnd();
      controller.close();
    }
  });
}
async function complete(head, input) {
  const pieces = [head];
  for (let position = 0; ; position += 1) {
    const piece = await input.piece(position);
    if (piece === null) return joined(pieces);
    pieces.push(piece);
  }
}

// src/streams/assessment.ts
var TIMEOUT_S2 = 600;
async function assess(caller, audio, options) {
  const { strategy, signal } = options;
  const data = {
    reference_text: options.referenceText,
    ...options.language !== void 0 && { language: options.language },
    ...options.gradingSystem !== void 0 && { grading_system: options.gradingSystem },
    ...options.granularity !== void 0 && { granularity: options.granularity },
    ...options.enableMiscue !== void 0 && { enable_miscue: options.enableMiscue },
    ...options.enableProsodyAssessment !== void 0 && {
      enable_prosody_assessment: options.enableProsodyAssessment
    }
  };
  const leaving = new AbortController();
  const request = { method: "POST", path: "/bp/ai/audio/pronunciation", signal: leavingWith(leaving, signal) };
  const input = new Input(encodedAudio(audio), (error) => leaving.abort(error));
  const body = inputBody({ strategy, data }, input, { live: caller.canUploadLive });
  try {
    return await call(caller, { ...request, body }, { timeoutS: TIMEOUT_S2, repeatable: true });
  } finally {
    input.close();
  }
}

// src/streams/cancel.ts
async function cancelStream(caller, streamId, heardMs) {
  const attempts = new Attempts(caller.backoff);
  for (; ; ) {
    try {
      await caller.call({ method: "DELETE", path: `/bp/ai/stream/${segment(streamId)}`, query: { heard_ms: heardMs } });
      return;
    } catch (error) {
      if (!(error instanceof ParleyError)) throw error;
      if (error.status === 404) return;
      const ms = attempts.delayMs({ withinMs: caller.backoff.resumeMs, retryAfter: error.retryAfter });
      if (!error.retryable || ms === null) throw error;
      await delay(ms);
    }
  }
}

// src/streams/digest.ts
var Digest = class {
  #hash = new Sha256();
  #chars = 0;
  addText(text) {
    this.#hash.update(utf8(text));
    for (const _ of text) this.#chars += 1;
  }
  addAudio(bytes) {
    this.#hash.update(bytes);
  }
  /** Return whether it is the digest that the server has sent. Called once, at the end. */
  matches({ chars, sha256 }) {
    return chars === this.#chars && sha256 === hex(this.#hash.digest());
  }
};

// src/streams/pieces.ts
var SILENCE_MS = 45e3;
async function* piecesOf(response) {
  if (!response.body?.getReader) {
    yield new Uint8Array(await response.arrayBuffer().catch(broken));
    return;
  }
  const reader = response.body.getReader();
  for (; ; ) {
    let timer;
    const silence = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new ConnectionLost("the connection is silent")), SILENCE_MS);
    });
    try {
      const { done, value } = await Promise.race([reader.read().catch(broken), silence]);
      if (done) return;
      yield value;
    } finally {
      clearTimeout(timer);
    }
  }
}
function broken(cause) {
  throw new ConnectionLost("the response broke off", cause);
}

// src/streams/sse.ts
var SseParser = class {
  #decoder = new TextDecoder();
  // It removes a byte order mark.
  #rest = "";
  #afterReturn = false;
  #data = [];
  #name = "";
  #id = null;
  /** Return the events that are complete with these bytes. */
  feed(bytes) {
    let text = this.#decoder.decode(bytes, { stream: true });
    if (text === "") return [];
    if (this.#afterReturn && text.startsWith("\n")) text = text.slice(1);
    this.#afterReturn = text.endsWith("\r");
    const lines = (this.#rest + text).split(/\r\n|\n|\r/);
    this.#rest = lines.pop();
    const messages = [];
    for (const line of lines) {
      if (line !== "") this.#field(line);
      else this.#dispatch(messages);
    }
    return messages;
  }
  #field(line) {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#name = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
  }
  #dispatch(messages) {
    if (this.#data.length > 0) {
      messages.push({ name: this.#name || "message", data: this.#data.join("\n"), id: this.#id });
    }
    this.#data = [];
    this.#name = "";
    this.#id = null;
  }
};

// src/streams/event_stream.ts
var PROXY_FAULTS = /* @__PURE__ */ new Set([502, 503, 504]);
var STEADY_MS = 1e4;
var MAX_FAULTY = 3;
var START_ID = 1;
var AUDIO = /* @__PURE__ */ new Set(["audio_chunk", "assistant_output_audio_chunk"]);
var Unnumbered = class extends ParleyError {
  original;
  constructor(original) {
    super(original.errorType, original.message);
    this.original = original;
  }
};
var Gap = class extends NotUnderstood {
};
var EventStream = class {
  streamId = null;
  conversationId = null;
  connection = "none";
  /** Resolves when the ids are known, or when they will never be. */
  opened;
  #setOpened = () => {
  };
  #caller;
  #request;
  #signal;
  #onConnection;
  #digest = new Digest();
  #lastId = 0;
  #drop = () => {
  };
  /**
   * `origin` is the request that begins the stream, or the id of a stream that has begun. A request needs an
   * `Idempotency-Key`, so that it can be repeated.
   */
  constructor(caller, origin, signal, onConnection = () => {
  }) {
    this.#caller = caller;
    this.#request = typeof origin === "string" ? null : origin;
    if (typeof origin === "string") this.streamId = origin;
    this.#signal = signal;
    this.#onConnection = onConnection;
    this.opened = new Promise((resolve) => this.#setOpened = resolve);
  }
  /** Close the connection, as an unreliable network would. The stream is then resumed. */
  dropConnection() {
    this.#drop();
  }
  /**
   * Yield each event once, in the order of the ids, up to `end`.
   *
   * Throws the error of an `error` event, and other errors if the stream cannot be resumed.
   */
  async *events() {
    try {
      const attempts = new Attempts(this.#caller.backoff);
      let faulty = 0;
      for (; ; ) {
        const [before, began] = [this.#lastId, performance.now()];
        let fault;
        try {
          for await (const event of this.#connection()) {
            yield event;
            if (event.name === "end") return;
          }
          fault = new ConnectionLost("the response has ended before the stream");
        } catch (error) {
          if (this.#signal.aborted) throw reasonOf(this.#signal);
          if (!(error instanceof ParleyError)) throw error;
          fault = error;
        }
        if (this.#lastId > before || performance.now() - began > STEADY_MS) {
          attempts.progress();
          faulty = 0;
        }
        if (fault instanceof NotUnderstood || fault instanceof Unnumbered) faulty += 1;
        const ms = this.#delayMs(fault, attempts);
        if (ms === null || faulty >= MAX_FAULTY) throw fault instanceof Unnumbered ? fault.original : fault;
        this.#setConnection("lost");
        await delay(ms, this.#signal);
      }
    } finally {
      this.#setOpened();
      if (this.connection !== "none") this.#setConnection("none");
    }
  }
  #setConnection(state) {
    this.connection = state;
    this.#onConnection(state, this.#lastId);
  }
  /** Return the delay before the next connection, or null if it cannot help. */
  #delayMs(fault, attempts) {
    const startsAgain = this.#isLostWithItsInput(fault);
    if (!startsAgain && !this.#resumes(fault)) return null;
    if (startsAgain) this.streamId = null;
    const { beginMs, resumeMs } = this.#caller.backoff;
    const withinMs = this.streamId === null ? beginMs : resumeMs;
    return attempts.delayMs({ withinMs, retryAfter: fault.retryAfter });
  }
  /** Return whether the connection broke before the server had the whole input, which ends a stream. */
  #isLostWithItsInput(fault) {
    if (this.#request?.body?.isUnsent === void 0 || this.#lastId > START_ID) return false;
    const isGone = fault.status === 404 && this.streamId !== null;
    return isGone || fault instanceof ConnectionLost && this.#request.body.isUnsent();
  }
  #resumes(fault) {
    if (fault instanceof ConnectionLost || fault instanceof Unnumbered || fault instanceof Gap) return true;
    const status = fault.status ?? 0;
    if (fault instanceof NotUnderstood) return PROXY_FAULTS.has(status);
    return status === 429 || status === 503 || this.streamId !== null && status >= 500;
  }
  /** Yield the new events of one connection. */
  async *#connection() {
    const connection = new AbortController();
    const abort = () => connection.abort(this.#signal.reason);
    if (this.#signal.aborted) throw reasonOf(this.#signal);
    this.#signal.addEventListener("abort", abort);
    const request = this.#nextRequest();
    let lost = null;
    const close = (reason) => connection.abort(lost = new ConnectionLost(reason));
    const giveUp = () => close("there is no response");
    this.#drop = () => close("the connection was dropped");
    const silence = request.body?.isUnsent ? void 0 : setTimeout(giveUp, SILENCE_MS);
    try {
      const response = await this.#caller.call({ ...request, signal: connection.signal });
      clearTimeout(silence);
      this.streamId = response.headers.get("X-Service-Stream-Id") ?? this.streamId;
      this.conversationId = response.headers.get("X-Service-Conversation-Id") ?? this.conversationId;
      if (this.streamId === null) throw new NotUnderstood("the response is not a stream", { status: response.status });
      this.#setOpened();
      this.#setConnection("open");
      const parser = new SseParser();
      for await (const bytes of piecesOf(response)) {
        for (const message of parser.feed(bytes)) {
          const event = this.#read(message);
          if (event !== null) yield event;
        }
      }
    } catch (error) {
      throw lost ?? error;
    } finally {
      this.#drop = () => {
      };
      clearTimeout(silence);
      this.#signal.removeEventListener("abort", abort);
      connection.abort();
    }
  }
  #nextRequest() {
    if (this.streamId === null) return this.#request;
    const path = `/bp/ai/stream/${segment(this.streamId)}`;
    return { method: "GET", path, headers: { "Last-Event-ID": String(this.#lastId) } };
  }
  /** Return the event, or null if it has been read before or is a `ping`. Throws the error of an `error`. */
  #read(message) {
    if (message.name === "ping") return null;
    const id = message.id === null ? null : Number(message.id);
    const event = parsedEvent(message, id ?? 0);
    if (id === null) {
      if (event.name === "error") throw new Unnumbered(errorIn(event));
      throw new NotUnderstood(`an event ${event.name} of the stream has no id`);
    }
    if (id <= this.#lastId) return null;
    if (id !== this.#lastId + 1) throw new Gap(`event ${id} of the stream follows event ${this.#lastId}`);
    this.#lastId = id;
    if (event.name === "error") throw errorIn(event);
    this.#digestOf(event);
    return event;
  }
  #digestOf(event) {
    const content = event.content;
    if (event.name === "assistant_output_chunk") this.#digest.addText(content.text);
    else if ("bytes" in event) this.#digest.addAudio(event.bytes);
    else if (event.name === "end" && !this.#digest.matches(content.digest)) throw new DigestMismatch(this.streamId, event);
  }
};
function parsedEvent({ name, data }, id) {
  try {
    const { content, timestamp } = JSON.parse(data);
    const event = { id, name, content, timestamp };
    if (AUDIO.has(name)) return { ...event, bytes: fromBase64(content.audio) };
    if (name === "assistant_output_chunk" && typeof content.text !== "string") throw new TypeError("it has no text");
    if (name === "end" && typeof content.digest.sha256 !== "string") throw new TypeError("it has no digest");
    if (name === "error" && typeof content.error.message !== "string") throw new TypeError("it has no message");
    return event;
  } catch (cause) {
    throw new NotUnderstood(`an event ${name} of the stream is malformed`, { cause });
  }
}
function errorIn(event) {
  const { error } = event.content;
  return new ParleyError(error.error_type, error.message, { extra: { ...error.extra } });
}

// src/streams/single_reading.ts
var LEFT = "the stream was left before its end";
var READ = "the events of a stream can be read once";
var UNSENT = "the stream was interrupted before it was sent";
var SingleReading = class {
  #read;
  #events = null;
  #refusal = null;
  /** Whether the first event was asked for. */
  begun = false;
  constructor(read) {
    this.#read = read;
  }
  events() {
    if (this.#refusal !== null) throw refused(this.#refusal);
    this.#events ??= this.#once();
    return this.#events;
  }
  /** Read all events that remain. Throws if a loop was left before. */
  async finish() {
    for await (const _ of this.events()) ;
    if (this.#refusal !== READ) throw refused(this.#refusal ?? LEFT);
  }
  /** There will be no events. */
  cancel() {
    this.#refusal ??= UNSENT;
  }
  async *#once() {
    if (this.#refusal !== null) throw refused(this.#refusal);
    this.begun = true;
    let why = LEFT;
    try {
      yield* this.#read();
      why = READ;
    } catch (error) {
      why = READ;
      throw error;
    } finally {
      this.#refusal = why;
    }
  }
};
function refused(why) {
  return new ParleyError("invalid_operation", `invalid_operation: ${why}`);
}

// src/streams/speech.ts
var Speech = class {
  /** The last event, as soon as it has arrived. */
  end = null;
  /** The type of the audio, such as `audio/mpeg`. Known with the first piece. */
  mimeType = null;
  #caller;
  #stream;
  #leaving = new AbortController();
  #audio = [];
  #events = new SingleReading(() => this.#read());
  constructor(caller, text, options) {
    const { strategies, platformParams, idempotencyKey = randomId(), signal } = options;
    this.#caller = caller;
    const body = jsonBody({ text, strategies, ...platformParams && { platform_params: platformParams } });
    const headers = { "Idempotency-Key": idempotencyKey };
    const request = { method: "POST", path: "/bp/ai/audio/tts", headers, body };
    this.#stream = new EventStream(caller, request, leavingWith(this.#leaving, signal));
  }
  get streamId() {
    return this.#stream.streamId;
  }
  /** The audio so far. At the end, it is one file of the type `mimeType`. */
  get audio() {
    return joined(this.#audio);
  }
  /** The events, each once and in order, up to `end`. Lost connections are resumed. Throws `ParleyError`. */
  [Symbol.asyncIterator]() {
    return this.#events.events();
  }
  /** Read all events that remain. Return the audio. Throws if a loop was left before `end`. */
  async finish() {
    if (this.end === null) await this.#events.finish();
    return this.audio;
  }
  /** Stop the synthesis. The events go on to an `end` with `canceled`. */
  async interrupt() {
    if (this.#events.begun) await this.#stream.opened;
    if (this.streamId !== null) return cancelStream(this.#caller, this.streamId, null);
    if (!this.#events.begun) this.#events.cancel();
    this.#leaving.abort();
  }
  async *#read() {
    for await (const found of this.#stream.events()) {
      const event = found;
      if (event.name === "end") this.end = event.content;
      if (event.name === "audio_chunk") {
        this.#audio.push(event.bytes);
        this.mimeType ??= event.content.mime_type ?? null;
      }
      yield event;
    }
  }
};

// src/streams/turn.ts
var Turn = class {
  /** The last event of the turn, as soon as it has arrived. */
  end = null;
  /** What the user has said, once it is recognized. */
  userInput = null;
  /** What precedes the input in the request. Null: the turn was resumed. */
  parameters;
  idempotencyKey;
  #caller;
  #input;
  #stream;
  #leaving = new AbortController();
  #paragraphs = [];
  #events = new SingleReading(() => this.#read());
  /** `origin` is what is said, or the id of the stream of a turn that was said before. */
  constructor(caller, origin, { signal, onConnection } = {}) {
    this.#caller = caller;
    const resumed = typeof origin === "string";
    this.parameters = resumed ? null : parametersOf(origin);
    this.idempotencyKey = resumed ? null : origin.idempotencyKey ?? randomId();
    this.#input = resumed ? null : this.#inputOf(origin);
    const leaving = leavingWith(this.#leaving, signal);
    this.#stream = new EventStream(caller, resumed ? origin : this.#requestOf(origin), leaving, onConnection);
  }
  #inputOf({ text, audio, turnDetection }) {
    if (text === void 0 === (audio === void 0)) throw new TypeError("either text or audio is required");
    const complete2 = audio === void 0 || audio instanceof Uint8Array;
    if (turnDetection && !complete2 && !(this.#caller.canUploadLive && readsWhileSending())) {
      throw new TypeError(
        "turnDetection cannot end `audio` here, where no response is read while the request is sent: use hands-free of parley-client/audio, or give `audio` as one Uint8Array"
      );
    }
    const source2 = audio !== void 0 ? encodedAudio(audio) : encodedText(text);
    return new Input(source2, (error) => this.#leaving.abort(error));
  }
  #requestOf({ text }) {
    const live = this.#caller.canUploadLive && typeof text !== "string";
    const body = inputBody(this.parameters, this.#input, { live });
    const headers = { "Idempotency-Key": this.idempotencyKey };
    return { method: "POST", path: "/bp/ai/conversation", headers, body };
  }
  /** Known as soon as the first event has arrived. */
  get streamId() {
    return this.#stream.streamId;
  }
  /** The `conversationId` of the next turn. Known as soon as the first event has arrived. */
  get conversationId() {
    return this.#stream.conversationId;
  }
  /** The state of the connection. A lost one is restored by itself. */
  get connection() {
    return this.#stream.connection;
  }
  /** The answer so far. Its paragraphs are separated by blank lines. */
  get text() {
    return this.#paragraphs.join("\n\n");
  }
  /**
   * The events, each once and in order, up to `end`. Lost connections are resumed. The request is sent when the first
   * event is asked for. Leaving the loop early closes the connection; the server finishes the answer by itself.
   *
   * Throws `ParleyError` if the turn fails.
   */
  [Symbol.asyncIterator]() {
    return this.#events.events();
  }
  /** Read all events that remain. Return the content of `end`. Throws if a loop was left before `end`. */
  async finish() {
    if (this.end === null) await this.#events.finish();
    return this.end;
  }
  /**
   * Stop the answer, because the user has interrupted it.
   *
   * `heardMs` are the milliseconds of its audio that were played: the history keeps only the words spoken until then.
   * Without it, the history keeps all that has been said. The events go on to an `end` with `canceled`. When this
   * returns, the next turn may begin.
   */
  async interrupt({ heardMs = null } = {}) {
    const heard = heardMs === null ? null : rounded("heardMs", heardMs);
    if (this.#events.begun && this.streamId === null) await this.#stream.opened;
    if (this.streamId !== null) return cancelStream(this.#caller, this.streamId, heard);
    if (!this.#events.begun) this.#events.cancel();
    this.#leaving.abort();
  }
  /** Close the connection, to see what happens on an unreliable network. The turn is resumed by itself. */
  dropConnection() {
    this.#stream.dropConnection();
  }
  async *#read() {
    try {
      for await (const event of this.#stream.events()) {
        this.#apply(event);
        yield event;
      }
    } finally {
      this.#input?.close();
    }
  }
  #apply(event) {
    switch (event.name) {
      case "end_of_speech":
        this.#input?.close();
        break;
      case "user_input":
        this.userInput = event.content;
        break;
      case "assistant_output_chunk":
        this.#paragraphs[event.content.index] = (this.#paragraphs[event.content.index] ?? "") + event.content.text;
        break;
      case "assistant_output_restart":
        this.#paragraphs.length = Math.min(this.#paragraphs.length, event.content.from_index);
        break;
      case "end":
        this.end = event.content;
        break;
    }
  }
};
function parametersOf(options) {
  return {
    strategies: options.strategies,
    type: options.audio === void 0 ? "text" : "audio",
    language_code: options.languageCode,
    target_language_code: options.targetLanguageCode ?? options.languageCode,
    ...options.conversationId && { conversation_id: options.conversationId },
    ...options.voice !== void 0 && { voice: options.voice },
    ...options.sttPrompt !== void 0 && { stt_prompt: options.sttPrompt },
    ...options.turnDetection !== void 0 && { turn_detection: sentDetection(options.turnDetection) },
    ...options.params !== void 0 && { params: options.params }
  };
}
function sentDetection(detection) {
  const { silence_ms: silenceMs } = detection;
  return silenceMs === void 0 ? detection : { ...detection, silence_ms: rounded("silence_ms", silenceMs) };
}

// src/user.ts
var CONVERSATION = "/bp/ai/conversation";
var User = class {
  constructor(caller) {
    this.caller = caller;
    this.account = new UserAccount(caller);
    this.leaderboards = new Leaderboards(caller);
    this.mail = new Mail(caller);
    this.predictions = new Predictions(caller);
    this.images = new Images(caller);
  }
  caller;
  account;
  leaderboards;
  mail;
  predictions;
  images;
  /** Return a turn of a conversation. It is sent when its iteration begins. */
  converse(options) {
    return new Turn(this.caller, options, options);
  }
  /**
   * Return a turn whose stream has begun before, such as in a page that was reloaded. All its events are read again.
   *
   * A stream can be read for two minutes after its end. Later, the iteration throws a `ParleyError` with the status
   * 404, and only the history has the turn.
   */
  resume(streamId, options = {}) {
    return new Turn(this.caller, streamId, options);
  }
  /** Return a text as speech. It is sent when its iteration begins. */
  speak(text, options) {
    return new Speech(this.caller, text, options);
  }
  /**
   * Assess the pronunciation of a text that is read aloud.
   *
   * `audio` is 16 kHz mono 16-bit PCM, raw or as WAV, in pieces of any size. It is sent while it is recorded.
   */
  assess(audio, options) {
    return assess(this.caller, audio, options);
  }
  /** Return a conversation with the records from `newest` back, newest first. */
  async history(conversationId, { newest = -1, size = 10, recordId } = {}) {
    const query = { conversation_id: conversationId, from: newest, size, record_id: recordId };
    return (await get(this.caller, `${CONVERSATION}/query`, query)).data;
  }
  /** Return the user's conversations, newest first. `before` is the `next` of the page before. */
  conversations({
    before,
    size
  } = {}) {
    return get(this.caller, "/bp/ai/conversations", { before, size });
  }
  async deleteConversation(conversationId) {
    await send(this.caller, "DELETE", `${CONVERSATION}/${segment(conversationId)}`);
  }
  /** Return the strategies that the user may choose. */
  offers() {
    return get(this.caller, "/bp/ai/offers");
  }
  /** Return the user, with the bound identities. */
  async user() {
    return (await get(this.caller, "/bp/user/me")).user;
  }
  /** Return what the user owns: purchases, subscriptions, rewards. */
  async assets() {
    return (await get(this.caller, "/bp/asset")).assets;
  }
  /** Return where the address of this client is. */
  ipLocation() {
    return get(this.caller, "/bp/iplocation/ipv4");
  }
};

// src/client.ts
var ParleyClient = class extends User {
  account;
  wallet;
  cards;
  sharing;
  #caller;
  constructor(baseUrl, appId = "default", options = {}) {
    const caller = new SessionCaller(new Transport(baseUrl, appId, options.fetch), {
      signKey: options.signKey ?? null,
      session: options.session ?? null,
      store: options.store ?? null,
      backoff: backoffOf(options.backoff),
      canUploadLive: options.liveUpload ?? canUploadLive(new BaseUrl(baseUrl).origin)
    });
    super(caller);
    this.#caller = caller;
    this.account = new Account(caller, caller.signedOut);
    this.wallet = new Wallet(caller);
    this.cards = new Cards(caller);
    this.sharing = new Sharing(caller);
    const { onSessionExpired } = options;
    if (onSessionExpired) caller.signInAgain = () => onSessionExpired(this);
  }
  /** The session, to be kept as secret as a password. Null: the user is not signed in. */
  session() {
    return this.#caller.session();
  }
  /** Sign in, and return the user. `info` is what the platform needs, such as `{id}` for `device`. */
  signIn(platform, info, fields = {}) {
    return this.#enter("/bp/user/login", { ...fields, [platform]: info });
  }
  /** Make an account with `name_password` or `email_password`, sign in, and return the user. */
  signUp(platform, info, fields = {}) {
    return this.#enter("/bp/user/signup", { ...fields, [platform]: info });
  }
  /** Make a new session as if this one had ended. Return whether that was possible. */
  refreshSession() {
    return this.#caller.renew();
  }
  /** End the session, on the server and here. */
  async signOut() {
    try {
      await send(this.#caller.withoutRenewal, "POST", "/bp/user/logout");
    } catch (error) {
      if (!(error instanceof ParleyError) || error.errorType !== "account.invalid_session") throw error;
    }
    await this.#caller.keep(null);
  }
  async #enter(path, body) {
    const response = await this.#caller.signedOut.call({ method: "POST", path, body: jsonBody(body) });
    return this.#caller.enter(await contentOf(response));
  }
};

// src/audio/faults.ts
var KINDS = {
  NotAllowedError: "refused",
  SecurityError: "refused",
  NotFoundError: "missing",
  OverconstrainedError: "missing",
  NotReadableError: "busy"
};
var MicrophoneFault = class _MicrophoneFault extends ParleyError {
  name = "MicrophoneFault";
  kind;
  constructor(kind, cause) {
    super("microphone", `microphone: ${kind === "failed" && cause instanceof Error ? cause.message : kind}`, { cause });
    this.kind = kind;
  }
  /** Return the fault that an error of the browser means. */
  static of(error) {
    if (error instanceof _MicrophoneFault) return error;
    return new _MicrophoneFault(KINDS[error?.name] ?? "failed", error);
  }
};

// src/audio/format.ts
var RATE = 16e3;
var SHORTEST_S = 0.3;
var LONGEST_S = 120;
var SEE_BUNDLERS = 'see "Bundlers" in the README of parley-client';
var PIECE_SAMPLES = 1200;

// src/audio/frames.ts
var Frames = class {
  #length;
  #rest = new Int16Array(0);
  constructor(length) {
    this.#length = length;
  }
  /** Return the frames that are complete with these samples. */
  push(samples) {
    const joined2 = new Int16Array(this.#rest.length + samples.length);
    joined2.set(this.#rest);
    joined2.set(samples, this.#rest.length);
    const frames = [];
    let at = 0;
    for (; at + this.#length <= joined2.length; at += this.#length) frames.push(joined2.subarray(at, at + this.#length));
    this.#rest = joined2.slice(at);
    return frames;
  }
};

// src/audio/near_voice.ts
var NEAR = power(-60);
var NEAR_OVER_ANSWER = power(-45);
var SMOOTHING = 0.3;
var NearVoice = class {
  #power = 0;
  /** Add a frame. Return whether it and those before are loud enough. */
  push(frame, { overAnswer }) {
    let sum = 0;
    for (const sample of frame) sum += (sample / 32768) ** 2;
    this.#power += SMOOTHING * (sum / frame.length - this.#power);
    return this.#power >= (overAnswer ? NEAR_OVER_ANSWER : NEAR);
  }
};
function power(decibels) {
  return 10 ** (decibels / 10);
}

// src/audio/utterances.ts
var WINDOW_MS = 300;
var BEGINS = 0.6;
var BEGINS_OVER_ANSWER = 1;
var PAUSE_MS = 810;
var Utterances = class {
  #frames;
  // of the window
  #pauseFrames;
  #window = [];
  #silent = 0;
  #speaking = false;
  constructor({ frameMs, pauseMs = PAUSE_MS }) {
    this.#frames = Math.round(WINDOW_MS / frameMs);
    this.#pauseFrames = Math.ceil(pauseMs / frameMs);
  }
  /** Add a frame. Return the change that it makes, if it makes one. */
  push(voiced, { overAnswer = false } = {}) {
    this.#window.push(voiced);
    if (this.#window.length > this.#frames) this.#window.shift();
    this.#silent = voiced ? 0 : this.#silent + 1;
    return this.#speaking ? this.#endsNow() : this.#beginsNow(overAnswer ? BEGINS_OVER_ANSWER : BEGINS);
  }
  #beginsNow(share) {
    if (this.#window.filter(Boolean).length < Math.round(share * this.#frames)) return null;
    this.#speaking = true;
    return "began";
  }
  #endsNow() {
    if (this.#silent < this.#pauseFrames) return null;
    this.#speaking = false;
    this.#window = [];
    return "ended";
  }
};

// src/audio/layers.ts
var Layer = class {
  rows;
  columns;
  #weights;
  #bias;
  constructor(weights, bias) {
    this.rows = bias.length;
    this.columns = weights.length / bias.length;
    this.#weights = weights;
    this.#bias = bias;
  }
  /** Write the rows' products with `input` from `from` on into `out`, from `at`. */
  apply(input, from, out, at) {
    const [weights, columns] = [this.#weights, this.columns];
    const whole = columns - columns % 4;
    for (let row = 0, weight = 0; row < this.rows; row += 1) {
      let [a, b, c, d] = [this.#bias[row], 0, 0, 0];
      for (let column = 0; column < whole; column += 4, weight += 4) {
        a += weights[weight] * input[from + column];
        b += weights[weight + 1] * input[from + column + 1];
        c += weights[weight + 2] * input[from + column + 2];
        d += weights[weight + 3] * input[from + column + 3];
      }
      for (let column = whole; column < columns; column += 1, weight += 1) {
        a += weights[weight] * input[from + column];
      }
      out[at + row] = a + b + c + d;
    }
  }
};
function layersOf(file, shapes) {
  const floats = shapes.reduce((total, [rows]) => total + 2 * rows, 0);
  const weights = shapes.reduce((total, [rows, columns]) => total + rows * columns, 0);
  if (file.byteLength !== 4 * floats + weights) throw new Error("these are not the weights of the voice detector");
  let [float, weight] = [0, 4 * floats];
  return shapes.map(([rows, columns]) => {
    const scales = new Float32Array(file, float, rows);
    const bias = new Float32Array(file, float + 4 * rows, rows);
    const quantized = new Int8Array(file, weight, rows * columns);
    float += 8 * rows;
    weight += rows * columns;
    return new Layer(Float32Array.from(quantized, (value, at) => value * scales[Math.floor(at / columns)]), bias);
  });
}

// src/audio/spectrum.ts
var WINDOW_SAMPLES = 256;
var BINS = WINDOW_SAMPLES / 2 + 1;
var BITS = Math.log2(WINDOW_SAMPLES);
var HANN = Float64Array.from({ length: WINDOW_SAMPLES }, (_, at) => Math.sin(Math.PI * at / WINDOW_SAMPLES) ** 2);
var COSINES = Float64Array.from({ length: WINDOW_SAMPLES / 2 }, (_, at) => Math.cos(2 * Math.PI * at / WINDOW_SAMPLES));
var SINES = Float64Array.from({ length: WINDOW_SAMPLES / 2 }, (_, at) => Math.sin(2 * Math.PI * at / WINDOW_SAMPLES));
var REVERSED = Uint8Array.from(
  { length: WINDOW_SAMPLES },
  (_, at) => Array.from({ length: BITS }, (_2, bit) => (at >> bit & 1) << BITS - 1 - bit).reduce((sum, bit) => sum | bit, 0)
);
var real = new Float64Array(WINDOW_SAMPLES);
var imaginary = new Float64Array(WINDOW_SAMPLES);
function magnitudes(samples, from, out, at) {
  for (let index = 0; index < WINDOW_SAMPLES; index += 1) {
    const sample = REVERSED[index];
    real[index] = samples[from + sample] * HANN[sample];
  }
  imaginary.fill(0);
  for (let half = 1; half < WINDOW_SAMPLES; half *= 2) combine(half);
  for (let bin = 0; bin < BINS; bin += 1) out[at + bin] = Math.hypot(real[bin], imaginary[bin]);
}
function combine(half) {
  const stride = WINDOW_SAMPLES / (2 * half);
  for (let begin = 0; begin < WINDOW_SAMPLES; begin += 2 * half) {
    for (let offset = 0; offset < half; offset += 1) {
      const [low, high] = [begin + offset, begin + offset + half];
      const [cosine, sine] = [COSINES[offset * stride], SINES[offset * stride]];
      const turnedReal = real[high] * cosine + imaginary[high] * sine;
      const turnedImaginary = imaginary[high] * cosine - real[high] * sine;
      real[high] = real[low] - turnedReal;
      imaginary[high] = imaginary[low] - turnedImaginary;
      real[low] = real[low] + turnedReal;
      imaginary[low] = imaginary[low] + turnedImaginary;
    }
  }
}

// src/audio/voice_detector.ts
var VOICE = 0.5;
var FRAME_SAMPLES = 512;
var CONTEXT_SAMPLES = 64;
var MIRRORED_SAMPLES = 64;
var HOP_SAMPLES = 128;
var TIMES = 4;
var UNITS = 128;
var KERNEL = 3;
var [FIRST, SECOND, THIRD, FOURTH] = [128, 64, 64, 128];
var SHAPES = [
  [FIRST, KERNEL * BINS],
  [SECOND, KERNEL * FIRST],
  [THIRD, KERNEL * SECOND],
  [FOURTH, KERNEL * THIRD],
  [4 * UNITS, FOURTH + UNITS],
  [1, UNITS]
];
var SileroVoiceDetector = class _SileroVoiceDetector {
  frameSamples = FRAME_SAMPLES;
  #convolutions;
  #memory;
  #output;
  #samples = new Float32Array(CONTEXT_SAMPLES + FRAME_SAMPLES + MIRRORED_SAMPLES);
  #result = new Float32Array(1);
  constructor(layers) {
    const [first, second, third, fourth, memory, output] = layers;
    this.#convolutions = [
      new Convolution(first, { times: TIMES, stride: 1 }),
      new Convolution(second, { times: TIMES, stride: 2 }),
      new Convolution(third, { times: TIMES / 2, stride: 2 }),
      new Convolution(fourth, { times: TIMES / 4, stride: 1 })
    ];
    this.#memory = new Memory(memory);
    this.#output = output;
  }
  /** `weights`: the address of `silero.bin` of this package, for build tools that do not find it, or its content. */
  static async load(weights = new URL("./silero.bin", import.meta.url)) {
    const file = weights instanceof ArrayBuffer ? weights : await fetched(weights);
    return new _SileroVoiceDetector(layersOf(file, SHAPES));
  }
  isVoice(frame) {
    return this.probability(frame) >= VOICE;
  }
  /** Return the probability of a voice in the next frame. */
  probability(frame) {
    this.#take(frame);
    const [first] = this.#convolutions;
    for (let time = 0; time < TIMES; time += 1) {
      magnitudes(this.#samples, time * HOP_SAMPLES, first.input, first.at(time));
    }
    for (const [index, convolution] of this.#convolutions.entries()) {
      const next = this.#convolutions[index + 1];
      if (next) convolution.apply(next.input, next.at(0));
      else convolution.apply(this.#memory.input, 0);
    }
    this.#output.apply(this.#memory.remember(), 0, this.#result, 0);
    return sigmoid(this.#result[0]);
  }
  free() {
  }
  /** The samples are the end of the frame before, the frame, and its end mirrored. */
  #take(frame) {
    const samples = this.#samples;
    samples.copyWithin(0, FRAME_SAMPLES, FRAME_SAMPLES + CONTEXT_SAMPLES);
    const end = CONTEXT_SAMPLES + FRAME_SAMPLES;
    for (let at = 0; at < FRAME_SAMPLES; at += 1) samples[CONTEXT_SAMPLES + at] = frame[at] / 32768;
    for (let at = 0; at < MIRRORED_SAMPLES; at += 1) samples[end + at] = samples[end - 2 - at];
  }
};
var Convolution = class {
  input;
  #layer;
  #channels;
  #times;
  #stride;
  constructor(layer, { times, stride }) {
    this.#layer = layer;
    this.#channels = layer.columns / KERNEL;
    this.#times = times;
    this.#stride = stride;
    this.input = new Float32Array((times + 2) * this.#channels);
  }
  /** Return where the channels of a time are in the input. */
  at(time) {
    return (time + 1) * this.#channels;
  }
  /** Write the result into `out`, from `at`. */
  apply(out, at) {
    const { rows } = this.#layer;
    const count = Math.ceil(this.#times / this.#stride);
    for (let time = 0; time < count; time += 1) {
      this.#layer.apply(this.input, time * this.#stride * this.#channels, out, at + time * rows);
    }
    for (let index = at; index < at + count * rows; index += 1) out[index] = Math.max(0, out[index]);
  }
};
var Memory = class {
  /** The values that are given, and the state from the time before. */
  input;
  #layer;
  #gates;
  #cells = new Float32Array(UNITS);
  #out = new Float32Array(UNITS);
  constructor(layer) {
    this.#layer = layer;
    this.input = new Float32Array(layer.columns);
    this.#gates = new Float32Array(layer.rows);
  }
  /** Take the input over into the memory. Return the positive part of its new state. */
  remember() {
    const [gates, cells] = [this.#gates, this.#cells];
    this.#layer.apply(this.input, 0, gates, 0);
    for (let unit = 0; unit < UNITS; unit += 1) {
      const kept = sigmoid(gates[UNITS + unit]) * cells[unit];
      cells[unit] = kept + sigmoid(gates[unit]) * Math.tanh(gates[2 * UNITS + unit]);
      const state = sigmoid(gates[3 * UNITS + unit]) * Math.tanh(cells[unit]);
      this.input[this.input.length - UNITS + unit] = state;
      this.#out[unit] = Math.max(0, state);
    }
    return this.#out;
  }
};
function sigmoid(value) {
  return 1 / (1 + Math.exp(-value));
}
async function fetched(url) {
  const response = await fetch(url);
  const isPage = response.headers.get("content-type")?.startsWith("text/html");
  if (response.ok && !isPage) return response.arrayBuffer();
  throw new Error(`${url} was answered with ${response.ok ? "HTML" : `status ${response.status}`}; ${SEE_BUNDLERS}`);
}

// src/audio/hands_free.ts
var BEFORE_MS = 525;
var HandsFree = class {
  #options;
  #on = null;
  #recording = null;
  // of the utterance
  constructor(options) {
    this.#options = options;
  }
  get on() {
    return this.#on !== null;
  }
  /** Open the microphone, and listen until `stop` is called. Throws `MicrophoneFault`. */
  async start() {
    if (this.#on) return;
    const { microphone, pauseMs, loadDetector = () => SileroVoiceDetector.load(), onLost } = this.#options;
    const on = { stop: () => {
    } };
    this.#on = on;
    try {
      const [detector] = await Promise.all([loadDetector(), microphone.open()]);
      await microphone.open();
      if (this.#on !== on) return detector.free();
      const frames = new Frames(detector.frameSamples);
      const frameMs = 1e3 * detector.frameSamples / RATE;
      const utterances = new Utterances({ frameMs, ...pauseMs !== void 0 && { pauseMs } });
      const near = new NearVoice();
      const hear = (samples) => {
        for (const frame of frames.push(samples)) {
          const overAnswer = this.#options.player.playing;
          const loud = near.push(frame, { overAnswer });
          const voiced = detector.isVoice(frame);
          this.#change(utterances.push(voiced && loud, { overAnswer }));
        }
      };
      const lost = () => {
        this.stop();
        onLost?.();
      };
      const ignore = microphone.listen(hear, lost);
      on.stop = () => {
        ignore();
        detector.free();
      };
    } catch (error) {
      if (this.#on === on) this.#on = null;
      throw error;
    }
  }
  /** Stop listening. An utterance that is being recorded ends here. */
  stop() {
    const on = this.#on;
    this.#on = null;
    on?.stop();
    void this.#recording?.stop();
    this.#recording = null;
  }
  #change(change) {
    if (this.#on === null) return;
    if (change === "began") this.#begin();
    else if (change === "ended") this.#end();
  }
  #begin() {
    const { microphone, onUtterance, maxSeconds = LONGEST_S } = this.#options;
    if (microphone.recording) return;
    this.#recording = microphone.record({ maxSeconds, beforeMs: BEFORE_MS });
    onUtterance(this.#recording);
  }
  #end() {
    void this.#recording?.stop();
    this.#recording = null;
  }
};

// src/audio/hold_to_talk.ts
var HoldToTalk = class {
  #microphone;
  #press = null;
  #recording = null;
  constructor(microphone) {
    this.#microphone = microphone;
  }
  /** Whether the button is held. A recording that ends by itself ends this as well. */
  get held() {
    return this.#press !== null;
  }
  /**
   * The user presses the button. Return the recording as soon as the microphone is open. Throws `MicrophoneFault`, with
   * `early` if the button was released before that. If less than 0.3 s are recorded, reading the recording throws `short`.
   */
  async press() {
    const press = /* @__PURE__ */ Symbol();
    this.#press = press;
    try {
      await this.#microphone.open();
      if (this.#press !== press) throw new MicrophoneFault("early");
      const recording = this.#microphone.record({ minSeconds: SHORTEST_S, maxSeconds: LONGEST_S });
      this.#recording = recording;
      void recording.ended.then(() => this.#released(press));
      return recording;
    } catch (error) {
      this.#released(press);
      throw error;
    }
  }
  /** The user releases the button. The recording is complete when this resolves. */
  async release() {
    const recording = this.#recording;
    this.#released(this.#press);
    await recording?.stop();
  }
  #released(press) {
    if (this.#press !== press) return;
    this.#press = null;
    this.#recording = null;
  }
};

// src/audio/recording.ts
var BYTES_PER_S = 2 * RATE;
var Recording = class {
  /** Resolves with the reason when the recording has ended. */
  ended;
  #source;
  #pieces;
  #shortestBytes;
  #longestBytes;
  #length;
  #end = null;
  #resolveEnded = () => {
  };
  #wake = () => {
  };
  #changed = new Promise((resolve) => this.#wake = resolve);
  /** `before`: what was heard before the recording, with which it begins. */
  constructor(source2, before, { minSeconds, maxSeconds }) {
    this.#source = source2;
    this.#pieces = before;
    this.#length = before.reduce((length, piece) => length + piece.length, 0);
    this.#shortestBytes = minSeconds * BYTES_PER_S;
    this.#longestBytes = maxSeconds * BYTES_PER_S;
    this.ended = new Promise((resolve) => this.#resolveEnded = resolve);
  }
  /** How much is recorded. */
  get seconds() {
    return this.#length / BYTES_PER_S;
  }
  /** All that is recorded. */
  get bytes() {
    return joined(this.#pieces);
  }
  /** Stop, and wait for the last samples. The iterations end. */
  async stop() {
    if (this.#end === null) await this.#source.flush();
    this.finish("stopped");
  }
  /** Stop and discard. The iterations throw, so that a turn that is being sent is given up. */
  cancel() {
    this.finish("canceled");
  }
  async *[Symbol.asyncIterator]() {
    for (let position = 0; ; position += 1) {
      while (this.#end === null && (this.#isShort || position >= this.#pieces.length)) await this.#changed;
      if (this.#end === "canceled") throw new MicrophoneFault("canceled");
      if (this.#isShort) throw new MicrophoneFault("short");
      const piece = this.#pieces[position];
      if (piece === void 0) return;
      yield piece;
    }
  }
  get #isShort() {
    return this.#length < this.#shortestBytes;
  }
  /** Called by the microphone with the next piece. */
  add(piece) {
    if (this.#end !== null) return;
    this.#pieces.push(piece);
    this.#length += piece.length;
    this.#notify();
    if (this.#length >= this.#longestBytes) this.finish("limit");
  }
  /** Called by the microphone when it delivers no more. The first reason counts. */
  finish(end) {
    if (this.#end !== null) return;
    this.#end = end;
    this.#source.release();
    this.#resolveEnded(end);
    this.#notify();
  }
  #notify() {
    this.#wake();
    this.#changed = new Promise((resolve) => this.#wake = resolve);
  }
};

// src/audio/microphone.ts
var KEEP_OPEN_MS = 15e3;
var FLUSH_MS = 500;
var PIECE_MS = 1e3 * PIECE_SAMPLES / RATE;
var HEARD_PIECES = 14;
var Microphone = class {
  #options;
  #open = null;
  #opened = null;
  #closing;
  #recording = null;
  #level = 0;
  #onFlushed = () => {
  };
  #listeners = /* @__PURE__ */ new Map();
  // what is called with samples, and when they end
  #heard = [];
  // the last pieces, while somebody listens
  constructor(options = {}) {
    this.#options = options;
  }
  /** The volume from 0 to 1 while the microphone is used. */
  get level() {
    return this.#level;
  }
  /** The recording that is being made, if there is one. */
  get recording() {
    return this.#recording;
  }
  /** Open the microphone, after asking the user for permission if necessary. Throws `MicrophoneFault`. */
  async open() {
    clearTimeout(this.#closing);
    const open = this.#open ??= this.#openDevice();
    try {
      const opened = await open;
      await opened.context.resume();
      this.#opened = opened;
      this.#closeLater();
    } catch (error) {
      if (this.#open === open) this.#open = null;
      throw MicrophoneFault.of(error);
    }
  }
  /** Start a recording. The microphone must be open, and there is one recording at a time. */
  record({ minSeconds = 0, maxSeconds = Infinity, beforeMs = 0 } = {}) {
    const { node } = this.#openedNow();
    if (this.#recording) throw new Error("the microphone is recording already");
    clearTimeout(this.#closing);
    const before = beforeMs > 0 ? this.#heard.slice(-Math.ceil(beforeMs / PIECE_MS)) : [];
    const source2 = { flush: () => this.#flush(node), release: () => this.#released() };
    this.#recording = new Recording(source2, before, { minSeconds, maxSeconds });
    return this.#recording;
  }
  /**
   * Call `listener` with all that the microphone hears, until the function that is returned is called. `onLost` is
   * called if the microphone is closed or unplugged.
   */
  listen(listener, onLost = () => {
  }) {
    this.#openedNow();
    clearTimeout(this.#closing);
    this.#listeners.set(listener, onLost);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#heard = [];
      this.#unused();
    };
  }
  /** Close the microphone now. The recording ends. */
  close() {
    return this.#close("stopped");
  }
  async #close(end) {
    clearTimeout(this.#closing);
    const [open, losers] = [this.#open, [...this.#listeners.values()]];
    this.#open = null;
    this.#opened = null;
    this.#listeners.clear();
    this.#heard = [];
    this.#recording?.finish(end);
    for (const onLost of losers) onLost();
    this.#setLevel(0);
    if (open === null) return;
    const { stream, context } = await open;
    for (const track of stream.getTracks()) track.stop();
    await context.close();
  }
  #openedNow() {
    if (this.#opened === null) throw new Error("the microphone is not open: await open() first");
    return this.#opened;
  }
  async #openDevice() {
    if (!navigator.mediaDevices) throw new MicrophoneFault("insecure");
    const { echoCancellation = true, noiseSuppression = true, autoGainControl = true } = this.#options;
    const stream = await navigator.mediaDevices.getUserMedia({
      audio: { channelCount: 1, echoCancellation, noiseSuppression, autoGainControl }
    });
    const context = new AudioContext();
    try {
      const { workletUrl = new URL("./worklet.js", import.meta.url) } = this.#options;
      await context.audioWorklet.addModule(workletUrl).catch((cause) => {
        const from = String(workletUrl).slice(0, 100);
        throw new Error(`worklet.js cannot be loaded from ${from}; ${SEE_BUNDLERS}`, { cause });
      });
    } catch (error) {
      for (const track of stream.getTracks()) track.stop();
      await context.close();
      throw error;
    }
    for (const track of stream.getTracks()) track.addEventListener("ended", () => void this.#close("lost"));
    const node = new AudioWorkletNode(context, "pcm", { numberOfOutputs: 0, processorOptions: { rate: RATE } });
    node.port.onmessage = ({ data }) => this.#onData(data.samples, data.level);
    context.createMediaStreamSource(stream).connect(node);
    return { stream, context, node };
  }
  #onData(samples, level) {
    if (samples === null) {
      this.#onFlushed();
      return;
    }
    if (this.#recording === null && this.#listeners.size === 0) return;
    this.#setLevel(level);
    const piece = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
    if (this.#recording) this.#recording.add(piece);
    if (this.#listeners.size > 0 && samples.length === PIECE_SAMPLES) {
      this.#heard = [...this.#heard, piece].slice(-HEARD_PIECES);
    }
    for (const listener of [...this.#listeners.keys()]) listener(samples);
  }
  async #flush(node) {
    let timer;
    await new Promise((resolve) => {
      this.#onFlushed = resolve;
      timer = setTimeout(resolve, FLUSH_MS);
      node.port.postMessage("flush");
    });
    clearTimeout(timer);
  }
  #released() {
    this.#recording = null;
    this.#unused();
  }
  /** Close the microphone after a while if nobody uses it. */
  #unused() {
    if (this.#recording || this.#listeners.size > 0) return;
    this.#setLevel(0);
    this.#closeLater();
  }
  #closeLater() {
    clearTimeout(this.#closing);
    if (this.#open === null || this.#recording || this.#listeners.size > 0) return;
    this.#closing = setTimeout(() => void this.close(), this.#options.keepOpenMs ?? KEEP_OPEN_MS);
  }
  #setLevel(level) {
    if (level === this.#level) return;
    this.#level = level;
    this.#options.onLevel?.(level);
  }
};

// src/audio/loudness.ts
var WINDOW_MS2 = 50;
var UNKNOWN = 0.3;
var LOUD = 0.25;
var Loudness = class {
  #levels = [];
  // one for each window
  /** Add samples from -1 to 1, which begin at `fromMs`. */
  add(samples, sampleRate, fromMs) {
    const size = Math.round(sampleRate * WINDOW_MS2 / 1e3);
    const first = Math.round(fromMs / WINDOW_MS2);
    for (let at = 0, window = first; at < samples.length; at += size, window += 1) {
      let sum = 0;
      const end = Math.min(at + size, samples.length);
      for (let index = at; index < end; index += 1) sum += samples[index] ** 2;
      this.#levels[window] = Math.max(this.#levels[window] ?? 0, Math.min(1, Math.sqrt(sum / (end - at)) / LOUD));
    }
  }
  /** Return the loudness at a position. */
  at(ms) {
    return this.#levels[Math.floor(ms / WINDOW_MS2)] ?? (this.#levels.length > 0 ? 0 : UNKNOWN);
  }
};

// src/audio/schedule.ts
var LEAD_S = 0.03;
var shared = null;
function contextOf(sampleRate) {
  if (shared?.sampleRate !== sampleRate) {
    void shared?.close();
    shared = new AudioContext({ sampleRate, latencyHint: "interactive" });
  }
  return shared;
}
var Schedule = class {
  context;
  #listener;
  #out;
  #spans = [];
  #running = /* @__PURE__ */ new Set();
  #listeners = new AbortController();
  #loudness = new Loudness();
  #complete = false;
  #finalMs = null;
  constructor(sampleRate, listener) {
    this.context = contextOf(sampleRate);
    this.#listener = listener;
    this.#out = this.context.createGain();
    this.#out.connect(this.context.destination);
    this.context.addEventListener("statechange", () => this.#changed(), { signal: this.#listeners.signal });
    this.resume();
  }
  get lengthMs() {
    return 1e3 * this.#lengthS;
  }
  play(buffer) {
    this.#loudness.add(buffer.getChannelData(0), buffer.sampleRate, this.lengthMs);
    const atS = this.#reserve(buffer.duration);
    const source2 = new AudioBufferSourceNode(this.context, { buffer });
    source2.connect(this.#out);
    source2.addEventListener("ended", () => this.#finished(source2), { signal: this.#listeners.signal });
    source2.start(atS);
    this.#running.add(source2);
    this.#changed();
  }
  end() {
    this.#complete = true;
    if (this.#running.size === 0) this.#finished(null);
  }
  stop() {
    this.#finalMs ??= this.playedMs;
    this.#listeners.abort();
    this.#out.disconnect();
    for (const source2 of this.#running) source2.stop();
    this.#running.clear();
  }
  resume() {
    if (this.context.state !== "running") this.context.resume().catch(() => {
    });
  }
  get playedMs() {
    if (this.#finalMs !== null) return this.#finalMs;
    const nowS = this.context.currentTime - (this.context.outputLatency || 0);
    const span = this.#spans.filter(({ atS }) => atS <= nowS).at(-1);
    return span ? 1e3 * (span.fromS + Math.min(span.lengthS, nowS - span.atS)) : 0;
  }
  get level() {
    return this.#loudness.at(this.playedMs);
  }
  get #lengthS() {
    const last = this.#spans.at(-1);
    return last ? last.fromS + last.lengthS : 0;
  }
  /** Return the start time of the next `lengthS`: directly after the scheduled audio, or soon if that is over. */
  #reserve(lengthS) {
    const last = this.#spans.at(-1);
    const endS = last ? last.atS + last.lengthS : -Infinity;
    if (last && endS >= this.context.currentTime) {
      last.lengthS += lengthS;
      return endS;
    }
    const atS = this.context.currentTime + LEAD_S;
    const fromS = this.#lengthS;
    if (last) this.#listener.gap(1e3 * fromS, 1e3 * (atS - endS));
    this.#spans.push({ atS, fromS, lengthS });
    return atS;
  }
  #finished(source2) {
    if (source2) this.#running.delete(source2);
    if (this.#running.size > 0) return;
    if (!this.#complete) {
      this.#listener.late();
      return;
    }
    this.#finalMs = this.lengthMs;
    this.#listener.ended();
  }
  #changed() {
    if (this.#running.size === 0) return;
    if (this.context.state === "running") this.#listener.playing();
    else if (navigator.userActivation?.hasBeenActive === false) this.#listener.blocked();
  }
};

// src/audio/decoded_sound.ts
var DecodedSound = class {
  #schedule;
  #listener;
  #starts = /* @__PURE__ */ new Map();
  #index = null;
  #pieces = [];
  #order = Promise.resolve();
  #stopped = false;
  constructor(sampleRate, listener) {
    this.#schedule = new Schedule(sampleRate, listener);
    this.#listener = listener;
  }
  push(bytes, index) {
    if (index !== this.#index) this.#decode();
    this.#index = index;
    this.#pieces.push(bytes);
  }
  end() {
    this.#decode();
    this.#then(() => this.#schedule.end());
  }
  stop() {
    this.#stopped = true;
    this.#schedule.stop();
  }
  resume() {
    this.#schedule.resume();
  }
  get playedMs() {
    return this.#schedule.playedMs;
  }
  get level() {
    return this.#schedule.level;
  }
  startOf(index) {
    return this.#starts.get(index) ?? null;
  }
  #decode() {
    if (this.#index === null || this.#pieces.length === 0) return;
    const [index, file] = [this.#index, joined(this.#pieces)];
    this.#pieces = [];
    this.#then(() => this.#play(index, file));
  }
  /** Paragraphs are decoded in order. */
  #then(action) {
    this.#order = this.#order.then(async () => {
      if (!this.#stopped) await action();
    });
  }
  async #play(index, file) {
    try {
      const buffer = await this.#schedule.context.decodeAudioData(file.buffer);
      if (this.#stopped) return;
      this.#starts.set(index, this.#schedule.lengthMs);
      this.#schedule.play(buffer);
    } catch {
      if (!this.#stopped) this.#listener.failed();
    }
  }
};

// src/audio/streamed_sound.ts
var FALSE_START_MS = 40;
var DECODED_RATE = 8e3;
function source() {
  return globalThis.MediaSource ?? globalThis.ManagedMediaSource;
}
function canStream(mimeType) {
  return source()?.isTypeSupported(mimeType) ?? false;
}
var StreamedSound = class {
  #audio;
  #listener;
  #source = new (source())();
  #url;
  #waiting = [];
  // bytes and index, not yet appended to the buffer
  #starts = /* @__PURE__ */ new Map();
  #listeners = new AbortController();
  #loudness = new Loudness();
  #buffer = null;
  #complete = false;
  #started = false;
  #silentSince = null;
  constructor(audio, listener, mimeType) {
    this.#audio = audio;
    this.#listener = listener;
    this.#url = URL.createObjectURL(this.#source);
    const once = { once: true, signal: this.#listeners.signal };
    const always = { signal: this.#listeners.signal };
    this.#source.addEventListener("sourceopen", () => this.#open(mimeType), once);
    audio.addEventListener("playing", () => this.#onPlaying(), always);
    audio.addEventListener("waiting", () => this.#onWaiting(), always);
    audio.addEventListener("timeupdate", () => this.#append(), always);
    audio.addEventListener("ended", () => listener.ended(), once);
    audio.addEventListener("error", () => listener.failed(), once);
    audio.disableRemotePlayback = true;
    audio.src = this.#url;
    this.resume();
  }
  push(bytes, index) {
    this.#waiting.push([bytes, index]);
    this.#append();
  }
  end() {
    this.#complete = true;
    this.#append();
  }
  stop() {
    this.#listeners.abort();
    this.#audio.pause();
    this.#audio.removeAttribute("src");
    this.#audio.load();
    URL.revokeObjectURL(this.#url);
  }
  resume() {
    this.#audio.play().catch((error) => {
      if (error.name === "NotAllowedError" && !this.#listeners.signal.aborted) this.#listener.blocked();
    });
  }
  get playedMs() {
    const ms = this.#audio.currentTime * 1e3;
    return ms < FALSE_START_MS ? 0 : ms;
  }
  get level() {
    return this.#loudness.at(this.playedMs);
  }
  startOf(index) {
    return this.#starts.get(index) ?? null;
  }
  #open(mimeType) {
    this.#buffer = this.#source.addSourceBuffer(mimeType);
    this.#buffer.addEventListener("updateend", () => this.#append(), { signal: this.#listeners.signal });
    this.#append();
  }
  #append() {
    if (this.#buffer === null || this.#buffer.updating || this.#source.readyState !== "open") return;
    const next = this.#waiting[0];
    if (next) this.#appendPiece(this.#buffer, ...next);
    else if (this.#complete && this.#buffer.buffered.length > 0) this.#source.endOfStream();
    else if (this.#complete) this.#listener.ended();
  }
  #appendPiece(buffer, bytes, index) {
    const fromMs = bufferedMs(buffer);
    if (!this.#starts.has(index)) this.#starts.set(index, fromMs);
    try {
      buffer.appendBuffer(bytes);
      this.#waiting.shift();
      void this.#measure(bytes, fromMs);
    } catch (error) {
      if (error.name !== "QuotaExceededError") this.#listener.failed();
    }
  }
  /** Decode a piece once more for its loudness, because the sound of a media element cannot be read everywhere. */
  async #measure(bytes, fromMs) {
    try {
      const decoder = new OfflineAudioContext(1, 1, DECODED_RATE);
      const decoded = await decoder.decodeAudioData(bytes.slice().buffer);
      this.#loudness.add(decoded.getChannelData(0), decoded.sampleRate, fromMs);
    } catch {
    }
  }
  #onPlaying() {
    if (this.#silentSince !== null) this.#listener.gap(this.playedMs, performance.now() - this.#silentSince);
    this.#silentSince = null;
    this.#started = true;
    this.#listener.playing();
  }
  #onWaiting() {
    if (this.#started) this.#silentSince ??= performance.now();
    this.#listener.late();
  }
};
function bufferedMs({ buffered }) {
  return buffered.length > 0 ? buffered.end(buffered.length - 1) * 1e3 : 0;
}

// src/audio/wav.ts
var HEADER_BYTES = 12;
var CHUNK_BYTES = 8;
function wavFormat(head) {
  const view = new DataView(head.buffer, head.byteOffset, head.length);
  const format = { channels: 1, sampleRate: 0, offset: 0 };
  let at = HEADER_BYTES;
  while (at + CHUNK_BYTES <= head.length) {
    const name = String.fromCharCode(...head.subarray(at, at + 4));
    const size = view.getUint32(at + 4, true);
    at += CHUNK_BYTES;
    if (name === "data") return { ...format, offset: at };
    if (name === "fmt " && at + 8 <= head.length) {
      format.channels = view.getUint16(at + 2, true);
      format.sampleRate = view.getUint32(at + 4, true);
    }
    at += size + size % 2;
  }
  return null;
}

// src/audio/wav_sound.ts
var WavSound = class {
  #schedule;
  #starts = /* @__PURE__ */ new Map();
  #head = null;
  // the bytes of an incomplete header
  #partial = new Uint8Array(0);
  #format = null;
  constructor(sampleRate, listener) {
    this.#schedule = new Schedule(sampleRate, listener);
  }
  push(bytes, index) {
    if (!this.#starts.has(index)) {
      this.#starts.set(index, this.#schedule.lengthMs);
      this.#head = new Uint8Array(0);
      this.#partial = new Uint8Array(0);
    }
    const samples = this.#head === null ? bytes : this.#afterHeader(this.#head, bytes);
    if (samples.length > 0 && this.#format) this.#play(joined([this.#partial, samples]), this.#format);
  }
  end() {
    this.#schedule.end();
  }
  stop() {
    this.#schedule.stop();
  }
  resume() {
    this.#schedule.resume();
  }
  get playedMs() {
    return this.#schedule.playedMs;
  }
  get level() {
    return this.#schedule.level;
  }
  startOf(index) {
    return this.#starts.get(index) ?? null;
  }
  #afterHeader(begun, bytes) {
    const head = joined([begun, bytes]);
    const format = wavFormat(head);
    this.#head = format === null ? head : null;
    if (format === null) return new Uint8Array(0);
    this.#format = format;
    return head.subarray(format.offset);
  }
  #play(bytes, { channels, sampleRate }) {
    const frames = Math.floor(bytes.length / (2 * channels));
    this.#partial = bytes.slice(frames * 2 * channels);
    if (frames === 0) return;
    const buffer = new AudioBuffer({ length: frames, numberOfChannels: channels, sampleRate });
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    for (let channel = 0; channel < channels; channel += 1) {
      const samples = buffer.getChannelData(channel);
      for (let at = 0; at < frames; at += 1) {
        samples[at] = view.getInt16(2 * (at * channels + channel), true) / 32768;
      }
    }
    this.#schedule.play(buffer);
  }
};

// src/audio/player.ts
var GAP_MS = 50;
var RATE2 = 24e3;
var GESTURES = ["keydown", "mousedown", "pointerup", "touchend"];
var Player = class {
  #watchers = /* @__PURE__ */ new Set();
  #audio = new Audio();
  #closing = new AbortController();
  #sound = null;
  #arriving = null;
  // the format of the answer whose audio is arriving
  #stopped = false;
  // whether the rest of the answer is not wanted
  #state = "idle";
  #heardMs = 0;
  // of the last answer
  #gaps = [];
  constructor({ onState } = {}) {
    if (onState) this.watch(onState);
    const always = { capture: true, signal: this.#closing.signal };
    for (const gesture of GESTURES) document.addEventListener(gesture, () => this.#unlock(), always);
  }
  /** Call `watcher` with each new state, until the function that is returned is called. */
  watch(watcher) {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }
  /** Play what an event of a turn or of a speech brings. Others than those with audio may be given as well. */
  push(event) {
    switch (event.name) {
      case "start":
        this.begin();
        break;
      case "assistant_output_audio_chunk":
        this.#add(event.content, event.bytes, event.content.index);
        break;
      case "audio_chunk":
        this.#add(event.content, event.bytes, 0);
        break;
      case "assistant_output_restart":
        if (!this.#stopped) this.begin();
        break;
      case "end":
        this.end();
        break;
    }
  }
  /** Stop the answer that is played. Another one begins. */
  begin() {
    this.stop();
    this.#stopped = false;
    this.#heardMs = 0;
  }
  /** Note that all audio of the answer has arrived. The rest is played. */
  end() {
    if (this.#arriving !== null) this.#sound?.end();
    this.#arriving = null;
  }
  /**
   * Stop immediately, and ignore events until the next answer begins. Return `heardMs`, or null if the user could not hear
   * the answer: the browser cannot play it, or did not before the user touched the page.
   */
  stop() {
    const unheard = this.#state === "failed" || this.#state === "blocked" && this.heardMs === 0;
    this.#stopped = true;
    this.#arriving = null;
    this.#finish("idle");
    return unheard ? null : this.heardMs;
  }
  /** Stop, and no longer wait for the user to touch the page. */
  close() {
    this.stop();
    this.#closing.abort();
    this.#watchers.clear();
  }
  get state() {
    return this.#state;
  }
  /** Whether an answer is played, or waits for its audio. */
  get playing() {
    return this.#sound !== null;
  }
  /** Milliseconds of the answer's audio that were heard. The value is kept until the next answer begins. */
  get heardMs() {
    return Math.round(this.#sound?.playedMs ?? this.#heardMs);
  }
  /** The loudness of what is heard at this moment, from 0 to 1. */
  get level() {
    return this.#state === "playing" ? this.#sound?.level ?? 0 : 0;
  }
  /** Return the start of paragraph `index` in milliseconds of audio, or null if it has not arrived. */
  startOf(index) {
    const startMs = this.#sound?.startOf(index) ?? null;
    return startMs === null ? null : Math.round(startMs);
  }
  /** Audible gaps in the answer because audio arrived late. */
  get gaps() {
    return [...this.#gaps];
  }
  #add(format, bytes, index) {
    if (this.#stopped) return;
    if (format.mime_type) this.#open(format.mime_type, format.sample_rate ?? RATE2);
    if (this.#arriving !== null) this.#sound?.push(bytes, index);
  }
  /** Each paragraph states the format. That of the first one opens the sound. */
  #open(mimeType, sampleRate) {
    const format = `${mimeType} ${sampleRate}`;
    if (this.#arriving === format) return;
    this.#finish("idle");
    this.#arriving = format;
    this.#gaps = [];
    this.#heardMs = 0;
    this.#setState("waiting");
    this.#sound = this.#soundOf(mimeType, sampleRate);
  }
  #soundOf(mimeType, sampleRate) {
    const listener = {
      playing: () => this.#setState("playing"),
      late: () => this.#setState("waiting"),
      blocked: () => this.#setState("blocked"),
      ended: () => this.#finish("idle"),
      failed: () => this.#finish("failed"),
      gap: (atMs, ms) => {
        if (ms > GAP_MS) this.#gaps.push({ atMs: Math.round(atMs), ms: Math.round(ms) });
      }
    };
    if (mimeType === "audio/wav") return new WavSound(sampleRate, listener);
    if (canStream(mimeType)) return new StreamedSound(this.#audio, listener, mimeType);
    return new DecodedSound(sampleRate, listener);
  }
  #finish(state) {
    const sound = this.#sound;
    if (sound === null) return;
    this.#heardMs = sound.playedMs;
    this.#sound = null;
    sound.stop();
    this.#setState(state);
  }
  #setState(state) {
    if (this.#state === state) return;
    this.#state = state;
    for (const watcher of [...this.#watchers]) watcher(state);
  }
  #unlock() {
    if (this.#sound === null) this.#audio.load();
    else this.#sound.resume();
  }
};

// src/audio/voice_chat.ts
var VoiceChat = class {
  microphone;
  player;
  #given;
  #button;
  #handsFree;
  #conversationId;
  #recording = null;
  #turn = null;
  // until it has ended and has been played
  #answering = false;
  // whether events of that turn are still to come
  #input = null;
  // of that turn
  #spoken = false;
  // whether audio of that turn has arrived
  #interrupted = Promise.resolve();
  #state = "idle";
  constructor(given) {
    this.#given = given;
    this.#conversationId = given.conversationId ?? null;
    this.microphone = given.microphone ?? new Microphone();
    this.#button = new HoldToTalk(this.microphone);
    this.player = given.player ?? new Player();
    this.player.watch(() => this.#changed());
    this.#handsFree = new HandsFree({
      microphone: this.microphone,
      player: this.player,
      ...given.pauseMs !== void 0 && { pauseMs: given.pauseMs },
      ...given.loadDetector && { loadDetector: given.loadDetector },
      onUtterance: (recording) => {
        void this.interrupt();
        void this.#listen(recording);
      },
      onLost: () => this.#report(new MicrophoneFault("lost"))
    });
  }
  get state() {
    return this.#state;
  }
  /** Whether it listens by itself. */
  get handsFree() {
    return this.#handsFree.on;
  }
  /** Null until the first answer has begun. */
  get conversationId() {
    return this.#conversationId;
  }
  /** The user says something in writing. Resolves when the answer is complete. */
  say(text) {
    return this.#converse({ text });
  }
  /** Record the user until `release` is called. This interrupts the answer. */
  async hold() {
    if (this.#button.held || this.microphone.recording) return;
    void this.interrupt();
    try {
      void this.#listen(await this.#button.press());
    } catch (error) {
      this.#report(error);
    }
  }
  /** The user has finished speaking. */
  release() {
    return this.#button.release();
  }
  /** Listen by itself: the user speaks at any time, and a pause ends the turn. */
  async startHandsFree() {
    try {
      await this.#handsFree.start();
    } catch (error) {
      this.#report(error);
    }
  }
  stopHandsFree() {
    this.#handsFree.stop();
  }
  /**
   * Stop the answer, or the recording that it would answer. The history keeps what was heard. When this resolves, the
   * next turn may begin.
   */
  interrupt() {
    const turn = this.#turn;
    if (turn === null) return this.#interrupted;
    if (this.#input !== null && this.#input === this.#recording) {
      this.#input.cancel();
      return this.#interrupted;
    }
    const heardMs = this.player.stop();
    this.#turn = null;
    this.#answering = false;
    this.#interrupted = turn.interrupt({ heardMs: this.#spoken ? heardMs : null }).catch((error) => this.#report(error));
    this.#changed();
    return this.#interrupted;
  }
  /** Stop everything, and close the microphone and the player. */
  async close() {
    this.#recording?.cancel();
    void this.#button.release();
    this.#handsFree.stop();
    await Promise.all([this.interrupt(), this.microphone.close()]);
    this.player.close();
  }
  async #listen(recording) {
    this.#recording = recording;
    void recording.ended.then(() => {
      if (this.#recording === recording) this.#recording = null;
      this.#changed();
    });
    this.#changed();
    try {
      for await (const _ of recording) break;
      await this.#converse({ audio: recording });
    } catch (error) {
      if (!isCanceled(error)) this.#report(error);
    }
  }
  async #converse(input) {
    await this.interrupt();
    const { client, options, onTurn, onEvent } = this.#given;
    const turn = client.converse({ ...options, ...input, conversationId: this.#conversationId });
    this.#turn = turn;
    this.#input = "audio" in input ? input.audio : null;
    this.#answering = true;
    this.#spoken = false;
    this.#changed();
    onTurn?.(turn);
    try {
      for await (const event of turn) {
        this.#apply(event, turn);
        onEvent?.(event, turn);
      }
    } catch (error) {
      if (!isCanceled(error)) this.#report(error);
    } finally {
      if (this.#turn === turn) {
        this.#answering = false;
        this.player.end();
      }
      this.#changed();
    }
  }
  #apply(event, turn) {
    const stored = event.name === "end" ? event.content.record_id !== null : event.name.startsWith("assistant_output");
    if (stored) this.#conversationId = turn.conversationId;
    if (this.#turn !== turn) return;
    if (event.name === "assistant_output_audio_chunk") this.#spoken = true;
    this.player.push(event);
    this.#changed();
  }
  #changed() {
    if (!this.#answering && !this.player.playing) this.#turn = null;
    const state = this.#stateNow();
    if (state === this.#state) return;
    this.#state = state;
    this.#given.onState?.(state);
  }
  #stateNow() {
    if (this.#recording) return "listening";
    if (this.#turn === null) return "idle";
    return this.player.playing ? "speaking" : "thinking";
  }
  #report(error) {
    const { onError = reportError } = this.#given;
    onError(error instanceof Error ? error : new Error(String(error), { cause: error }));
  }
};
function isCanceled(error) {
  return error instanceof MicrophoneFault && error.kind === "canceled";
}
export {
  ConnectionLost,
  DigestMismatch,
  HandsFree,
  HoldToTalk,
  Microphone,
  MicrophoneFault,
  NotUnderstood,
  ParleyClient,
  ParleyError,
  Player,
  SIGN_HEADER,
  SileroVoiceDetector,
  Speech,
  SseParser,
  Turn,
  User,
  Utterances,
  VoiceChat,
  signRequest
};
