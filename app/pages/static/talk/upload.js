// A request body that is sent while the user speaks. Browsers support this only over HTTP/2 and later.

const PROTOCOLS = new Set(["h2", "h3"]);

/** Return whether this browser supports it on the connection that loaded this page. */
export function canUploadLive() {
  const [page] = performance.getEntriesByType("navigation");
  return PROTOCOLS.has(page?.nextHopProtocol) && supportsStreams();
}

function supportsStreams() {
  let duplexRead = false;
  const options = {
    method: "POST",
    body: new ReadableStream(),
    get duplex() {
      duplexRead = true; // Browsers without support ignore this, convert the stream to text and set a Content-Type.
      return "half";
    },
  };
  return !new Request(window.location.href, options).headers.has("Content-Type") && duplexRead;
}

export class LiveBody {
  #controller = null;
  #text = new TextEncoder();

  /** The body begins with `head`. After the reader has cancelled the body, `push` does nothing. */
  constructor(head) {
    this.stream = new ReadableStream({
      start: (controller) => (this.#controller = controller),
      cancel: () => (this.#controller = null),
    });
    this.push(head);
  }

  push(text) {
    this.#controller?.enqueue(this.#text.encode(text));
  }

  end() {
    this.#controller?.close();
    this.#controller = null;
  }
}
