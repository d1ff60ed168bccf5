// A digest of all that a stream said, to compare with the one that its end tells: nothing is missing, nothing twice.

const AUDIO = new Set(["audio_chunk", "assistant_output_audio_chunk"]);

export class Digest {
  #said = [];
  #chars = 0;

  /** Take an event. Of audio: `{bytes}`, decoded. */
  take(name, content) {
    if (name === "assistant_output_chunk") {
      this.#said.push(new TextEncoder().encode(content.text));
      this.#chars += [...content.text].length; // code points
    } else if (AUDIO.has(name)) {
      const bytes = Uint8Array.from(atob(content.audio), (letter) => letter.charCodeAt(0));
      this.#said.push(bytes);
      return { bytes };
    }
    return {};
  }

  /** "right", "wrong", or null where this browser cannot tell. */
  async compare({ chars, sha256 }) {
    if (!crypto.subtle) return null; // it is there on secure addresses alone
    const hash = await crypto.subtle.digest("SHA-256", await new Blob(this.#said).arrayBuffer());
    const hex = Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
    return chars === this.#chars && hex === sha256 ? "right" : "wrong";
  }
}
