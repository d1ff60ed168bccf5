// Tasks that make images.

import type { ImageReply, NewImage } from "../api.js";
import { get, sendOnce } from "../http/calls.js";
import type { Caller } from "../http/transport.js";
import { segment } from "../http/urls.js";
import { rounded } from "../numbers.js";

const LONGEST_WAIT_S = 300;
const MARGIN_S = 30;

export interface ImagineOptions {
  /** By default `imagine`. */
  type?: NewImage["type"] | undefined;
  /** An image of the user that is put before the prompt. */
  imageUrl?: string | undefined;
  /** How long to wait for the end of the task: by default not at all, at most 300 s. */
  waitS?: number | undefined;
}

export class Images {
  constructor(private readonly caller: Caller) {}

  /** Begin an image task. A task that fails is no error: its `status` is `failed`. */
  async imagine(
    strategy: string,
    data: Record<string, unknown>,
    { type = "imagine", imageUrl, waitS = 0 }: ImagineOptions = {},
  ): Promise<ImageReply> {
    const wait = Math.min(rounded("waitS", waitS), LONGEST_WAIT_S);
    const body = { strategy, type, data, image_url: imageUrl };
    const headers: Record<string, string> = wait > 0 ? { Prefer: `wait=${wait}` } : {};
    return sendOnce(this.caller, "POST", "/bp/ai/imagine", body, { headers, timeoutS: wait + MARGIN_S });
  }

  async read(taskId: string): Promise<ImageReply> {
    return get(this.caller, `/bp/ai/imagine/${segment(taskId)}`);
  }
}
