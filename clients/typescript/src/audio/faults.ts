// Why there is no recording.

import { ParleyError } from "../errors.js";

/**
 * `insecure`: the page was not loaded over HTTPS. `refused`: by the user or the page's policy. `missing`: there is no
 * microphone. `busy`: another program uses it. `failed`: anything else, see `cause`. `lost`: it was unplugged or closed.
 *
 * `early`: the user had finished before the microphone was open. `short`: too little was recorded to be speech.
 * `canceled`: the recording was.
 */
export type MicrophoneFaultKind =
  | "insecure"
  | "refused"
  | "missing"
  | "busy"
  | "failed"
  | "lost"
  | "early"
  | "short"
  | "canceled";

const KINDS: Record<string, MicrophoneFaultKind> = {
  NotAllowedError: "refused",
  SecurityError: "refused",
  NotFoundError: "missing",
  OverconstrainedError: "missing",
  NotReadableError: "busy",
};

export class MicrophoneFault extends ParleyError {
  override readonly name = "MicrophoneFault";
  readonly kind: MicrophoneFaultKind;

  constructor(kind: MicrophoneFaultKind, cause?: unknown) {
    super("microphone", `microphone: ${kind === "failed" && cause instanceof Error ? cause.message : kind}`, { cause });
    this.kind = kind;
  }

  /** Return the fault that an error of the browser means. */
  static of(error: unknown): MicrophoneFault {
    if (error instanceof MicrophoneFault) return error;
    return new MicrophoneFault(KINDS[(error as Error)?.name] ?? "failed", error);
  }
}
