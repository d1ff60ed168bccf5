// Scores and rankings.

import type { BoardQuery, BoardReply, UploadReply } from "../api.js";
import { send } from "../http/calls.js";
import type { Caller } from "../http/transport.js";

export class Leaderboards {
  constructor(private readonly caller: Caller) {}

  /** Set the user's score. `extra` is shown beside it. */
  upload(name: string, score: number, extra?: Record<string, unknown>): Promise<UploadReply> {
    return send(this.caller, "POST", "/bp/leaderboard/data", { name, data: { score, ...(extra && { extra }) } });
  }

  /** The ranks `from` to `to`, and `around` users around this one. */
  query(board: BoardQuery): Promise<BoardReply> {
    return send(this.caller, "POST", "/bp/leaderboard", board);
  }
}
