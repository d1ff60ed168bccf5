// Scores and rankings.

import type { BoardReply, BoardView, Uploaded, UploadReply } from "../api.js";
import { send } from "../http/calls.js";
import type { Caller } from "../http/transport.js";

export interface BoardOptions {
  /** By default, the ranks 1 to 10. */
  first?: number | undefined;
  last?: number | undefined;
  /** How many users around this one are returned as well. */
  around?: number | undefined;
}

export class Leaderboards {
  constructor(private readonly caller: Caller) {}

  /** Store the user's score, in place of the one before. */
  async upload(
    name: string,
    score: number,
    { extra }: { extra?: Record<string, unknown> | undefined } = {},
  ): Promise<Uploaded> {
    const body = { name, data: { score, ...(extra && { extra }) } };
    const reply = await send<UploadReply>(this.caller, "POST", "/bp/leaderboard/data", body, { repeatable: true });
    return reply.leaderboard[0]!;
  }

  async query(name: string, { first = 1, last = 10, around }: BoardOptions = {}): Promise<BoardView> {
    const body = { name, from: first, to: last, around };
    const reply = await send<BoardReply>(this.caller, "POST", "/bp/leaderboard", body, { repeatable: true });
    return reply.leaderboard;
  }
}
