// The format of recordings.

/** Samples per second. */
export const RATE = 16_000;
/** Less than this is no speech. */
export const SHORTEST_S = 0.3;
/** A recording of one turn ends after this time. */
export const LONGEST_S = 120;
/** The end of the errors of files that a build tool has left behind. */
export const SEE_BUNDLERS = 'see "Bundlers" in the README of parley-client';
/** Samples of each piece of a recording except for the last one. That of the worklet is the same. */
export const PIECE_SAMPLES = 1_200;
