// Pronunciation assessment: recorded audio goes out, and one result comes back.

import type { AssessmentParams, PronunciationReply } from "../api.js";
import { leavingWith } from "../http/aborting.js";
import { call } from "../http/calls.js";
import type { Caller } from "../http/transport.js";
import type { AbortSignalLike } from "../http/web.js";
import { encodedAudio, Input, inputBody, type Pieces } from "./input.js";

/** Five minutes of audio, which is the most, are assessed within half that time after their end. */
const TIMEOUT_S = 600;

export interface AssessOptions {
  /** Name of a pronunciation strategy. */
  strategy: string;
  /** What the user reads aloud. */
  referenceText: string;
  /** By default `en-US`. */
  language?: string | undefined;
  gradingSystem?: AssessmentParams["grading_system"] | undefined;
  granularity?: AssessmentParams["granularity"] | undefined;
  /** Whether omitted and inserted words are marked. */
  enableMiscue?: boolean | undefined;
  enableProsodyAssessment?: boolean | undefined;
  signal?: AbortSignalLike | undefined;
}

export async function assess(
  caller: Caller,
  audio: Pieces<Uint8Array>,
  options: AssessOptions,
): Promise<PronunciationReply> {
  const { strategy, signal } = options;
  const data = {
    reference_text: options.referenceText,
    ...(options.language !== undefined && { language: options.language }),
    ...(options.gradingSystem !== undefined && { grading_system: options.gradingSystem }),
    ...(options.granularity !== undefined && { granularity: options.granularity }),
    ...(options.enableMiscue !== undefined && { enable_miscue: options.enableMiscue }),
    ...(options.enableProsodyAssessment !== undefined && {
      enable_prosody_assessment: options.enableProsodyAssessment,
    }),
  };
  const leaving = new AbortController();
  const request = { method: "POST" as const, path: "/bp/ai/audio/pronunciation", signal: leavingWith(leaving, signal) };
  const input = new Input(encodedAudio(audio), (error) => leaving.abort(error));
  const body = inputBody({ strategy, data }, input, { live: caller.canUploadLive });
  try {
    // It can be repeated: the server cancels an assessment whose client has left.
    return await call(caller, { ...request, body }, { timeoutS: TIMEOUT_S, repeatable: true });
  } finally {
    input.close();
  }
}
