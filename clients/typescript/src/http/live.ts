// Whether request bodies can be sent while they are still being made.
//
// Node, Deno and Bun can. Chromium can over HTTP/2 and HTTP/3 only: over HTTP/1.1, which development servers use, the
// request fails. Firefox and Safari cannot, and neither can React Native. There, the input is collected and then sent.

const PROTOCOLS = new Set(["h2", "h3"]);

interface Environment {
  process?: { versions?: { node?: string } };
  Deno?: unknown;
  navigator?: { product?: string };
  location?: { origin?: string };
}

/**
 * Return whether `fetch` delivers the response while the request is still being sent. That of browsers does not, even
 * where it can upload live: https://fetch.spec.whatwg.org/#dom-requestinit-duplex.
 */
export function readsWhileSending(): boolean {
  const { process, Deno } = globalThis as Environment;
  return Boolean(process?.versions?.node || Deno);
}

/** Return whether this environment can, on a connection to `origin`. A page knows this of its own origin only. */
export function canUploadLive(origin: string): boolean {
  if (readsWhileSending()) return true;
  const { navigator, location } = globalThis as Environment;
  if (navigator?.product === "ReactNative" || location?.origin !== origin) return false;
  const [page] = performance.getEntriesByType("navigation") as { nextHopProtocol?: string }[];
  return PROTOCOLS.has(page?.nextHopProtocol ?? "") && supportsStreams(origin);
}

function supportsStreams(origin: string): boolean {
  let duplexRead = false;
  const options = {
    method: "POST",
    body: new ReadableStream(),
    get duplex() {
      duplexRead = true; // Browsers without support ignore this, convert the stream to text and set a Content-Type.
      return "half";
    },
  };
  return !new Request(origin, options as RequestInit).headers.has("Content-Type") && duplexRead;
}
