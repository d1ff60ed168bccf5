// Family sharing: an asset that several users have.

import type { AssetList, AssetView, ShareCode } from "../api.js";
import { sendOnce } from "../http/calls.js";
import type { Caller } from "../http/transport.js";

export class Sharing {
  constructor(private readonly caller: Caller) {}

  /** The code with which others join the asset that lasts longest. `quota`: how many may join. */
  code({ quota }: { quota?: number | undefined } = {}): Promise<ShareCode> {
    return sendOnce(this.caller, "POST", "/bp/asset/share_group/code", { share_code_quota: quota });
  }

  /** Join the subscription of another user. Return what this user has now. */
  async join(shareCode: string): Promise<AssetView[]> {
    const body = { share_code: shareCode };
    return (await sendOnce<AssetList>(this.caller, "POST", "/bp/asset/share_group/join", body)).assets;
  }
}
