// The format of recordings.

/** Samples per second. */
export const RATE = 16_000;
/** Samples of each piece of a recording except for the last one. That of the worklet is the same. */
export const PIECE_SAMPLES = 1_200;
