// Predictions of models at a model host.

import type { AsyncReply, AsyncRequest, PredictionReply, PredictionRequest, PredictionState, UploadedFile } from "../api.js";
import { contentOf, get, send, sendOnce } from "../http/calls.js";
import type { Caller } from "../http/transport.js";
import { encoded } from "../http/urls.js";

export class Predictions {
  constructor(private readonly caller: Caller) {}

  /** Make a prediction, and wait for it: up to five minutes. */
  predict(request: PredictionRequest): Promise<PredictionReply> {
    return send(this.caller, "POST", "/bp/ai/prediction", request);
  }

  /** Begin a prediction. `read` returns its state. */
  predictLater(request: AsyncRequest): Promise<AsyncReply> {
    return sendOnce(this.caller, "POST", "/bp/ai/async/modelhub", request);
  }

  read(predictionId: string): Promise<PredictionState> {
    return get(this.caller, `/bp/ai/async/modelhub/${encoded(predictionId)}`);
  }

  /** Upload a file, whose `url` can be an input of a model. */
  async upload(file: Uint8Array): Promise<UploadedFile> {
    const body = { contentType: "application/octet-stream", signed: file, open: () => file };
    return contentOf(await this.caller.call({ method: "PUT", path: "/bp/ai/upload", body }));
  }
}
