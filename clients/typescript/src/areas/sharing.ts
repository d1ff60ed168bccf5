// Family sharing: an asset that several users have.

import type { AssetList, ShareCode } from "../api.js";
import { sendOnce } from "../http/calls.js";
import type { Caller } from "../http/transport.js";

export class Sharing {
  constructor(private readonly caller: Caller) {}

  /** The code with which others join the asset that lasts longest. `quota`: how many may join. */
  code({ quota }: { quota?: number } = {}): Promise<ShareCode> {
    return sendOnce(this.caller, "POST", "/bp/asset/share_group/code", { share_code_quota: quota });
  }

  join(shareCode: string): Promise<AssetList> {
    return sendOnce(this.caller, "POST", "/bp/asset/share_group/join", { share_code: shareCode });
  }
}
