// A digest of all text and audio of a stream. Comparing it with the one in `end` detects missing or repeated events.

const AUDIO = new Set(["audio_chunk", "assistant_output_audio_chunk"]);

export class Digest {
  #content = [];
  #chars = 0;

  /** Add an event. For audio, return the decoded audio as `{bytes}`. */
  add(name, content) {
    if (name === "assistant_output_chunk") {
      this.#content.push(new TextEncoder().encode(content.text));
      this.#chars += [...content.text].length; // code points
    } else if (AUDIO.has(name)) {
      const bytes = Uint8Array.from(atob(content.audio), (letter) => letter.charCodeAt(0));
      this.#content.push(bytes);
      return { bytes };
    }
    return {};
  }

  /** Return "matches", "differs", or null if this browser cannot compute it. */
  async compare({ chars, sha256 }) {
    if (!crypto.subtle) return null; // It exists only in secure contexts.
    const hash = await crypto.subtle.digest("SHA-256", await new Blob(this.#content).arrayBuffer());
    const hex = Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
    return chars === this.#chars && hex === sha256 ? "matches" : "differs";
  }
}
