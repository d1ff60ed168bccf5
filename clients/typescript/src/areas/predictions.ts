// Predictions of models at a model host.

import type { AsyncReply, PredictionReply, PredictionState, UploadedFile } from "../api.js";
import { call, get, send, sendOnce } from "../http/calls.js";
import type { Caller } from "../http/transport.js";
import { segment } from "../http/urls.js";

/** The server waits for a prediction for 300 s. */
const PREDICTION_S = 310;
const UPLOAD_S = 120;

export class Predictions {
  constructor(private readonly caller: Caller) {}

  /** Make a prediction and wait for its end, for up to five minutes. */
  create(strategy: string, version: string, input: Record<string, unknown> = {}): Promise<PredictionReply> {
    const body = { strategy, version, input };
    return send(this.caller, "POST", "/bp/ai/prediction", body, { timeoutS: PREDICTION_S });
  }

  /**
   * Begin a prediction, to be read with its `id`.
   *
   * `data` goes to the host: `input`, and without a `model` the `version`.
   */
  begin(
    strategy: string,
    data: Record<string, unknown>,
    { model }: { model?: string | undefined } = {},
  ): Promise<AsyncReply> {
    const body = { strategy, module: model === undefined ? "prediction" : "model", model, data };
    return sendOnce(this.caller, "POST", "/bp/ai/async/modelhub", body);
  }

  async read(predictionId: string): Promise<PredictionState> {
    return get(this.caller, `/bp/ai/async/modelhub/${segment(predictionId)}`);
  }

  /** Upload a file for the input of a prediction, and return its URL. */
  async upload(file: Uint8Array): Promise<string> {
    const body = { contentType: "application/octet-stream", signed: file, open: () => file };
    const request = { method: "PUT" as const, path: "/bp/ai/upload", body };
    return (await call<UploadedFile>(this.caller, request, { timeoutS: UPLOAD_S })).url;
  }
}
