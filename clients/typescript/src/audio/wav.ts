// The header of WAV files (https://www.mmsp.ece.mcgill.ca/Documents/AudioFormats/WAVE/WAVE.html).

const HEADER_BYTES = 12;
const CHUNK_BYTES = 8;

export interface WavFormat {
  channels: number;
  sampleRate: number;
  /** Where the samples begin. */
  offset: number;
}

/** Return the format of a WAV and the offset of its samples, or null if the header is incomplete. */
export function wavFormat(head: Uint8Array): WavFormat | null {
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
    at += size + (size % 2);
  }
  return null;
}
