// A body that is sent while the user still speaks. Browsers can do so over HTTP/2 and later alone.

const PROTOCOLS = new Set(["h2", "h3"]);

/** Whether this browser can, on the line by which this page came. */
export function canUploadLive() {
  const [page] = performance.getEntriesByType("navigation");
  return PROTOCOLS.has(page?.nextHopProtocol) && takesStreams();
}

function takesStreams() {
  let asked = false;
  const options = {
    method: "POST",
    body: new ReadableStream(),
    get duplex() {
      asked = true; // by a browser that knows of such bodies; another makes text of it, with a type
      return "half";
    },
  };
  return !new Request(window.location.href, options).headers.has("Content-Type") && asked;
}

export class LiveBody {
  #controller = null;
  #text = new TextEncoder();

  /** `head` stands before all that is pushed. Whoever reads the body may cancel it: what comes then is left out. */
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
