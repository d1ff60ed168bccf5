// Tasks that make images.

import type { ImageReply, NewImage } from "../api.js";
import { get, sendOnce } from "../http/calls.js";
import type { Caller } from "../http/transport.js";
import { encoded } from "../http/urls.js";

export class Images {
  constructor(private readonly caller: Caller) {}

  /** Begin a task. `read` returns its state. */
  create(task: NewImage): Promise<ImageReply> {
    return sendOnce(this.caller, "POST", "/bp/ai/imagine", task);
  }

  read(taskId: string): Promise<ImageReply> {
    return get(this.caller, `/bp/ai/imagine/${encoded(taskId)}`);
  }
}
