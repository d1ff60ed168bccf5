// Bytes as text: UTF-8, hexadecimal and Base64, and random ids.

const RANDOM_BYTES = 16;

export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function base64(bytes: Uint8Array): string {
  let letters = "";
  for (let position = 0; position < bytes.length; position += 0x8000) {
    letters += String.fromCharCode(...bytes.subarray(position, position + 0x8000)); // Arguments are limited.
  }
  return btoa(letters);
}

export function base64Url(bytes: Uint8Array): string {
  return base64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** Return 32 random hexadecimal digits, for nonces and idempotency keys. */
export function randomId(): string {
  if (!globalThis.crypto?.getRandomValues) {
    throw new Error("crypto.getRandomValues is missing: in React Native, import react-native-get-random-values first");
  }
  return hex(crypto.getRandomValues(new Uint8Array(RANDOM_BYTES)));
}
