"""Google Play Games (`android_games_service`): the server trusts the client's player id (§2.2)."""

import re
from datetime import datetime
from typing import ClassVar

from vendors.http.transport import VendorHttp
from vendors.signin.protocols import Profile, Proof, ProofRefused, SignInApp, VerifiedIdentity

_PLAYER_ID = re.compile(r"[!-~]{1,256}", re.ASCII)


class PlayGames:
    """Needs no config. The identity is marked as not trusted."""

    proof_fields: ClassVar[tuple[str, ...]] = ("player_id",)

    def __init__(self, http: VendorHttp, app: SignInApp) -> None:
        self._platform = app.platform

    async def verify(self, proof: Proof, *, now: datetime) -> VerifiedIdentity:
        if _PLAYER_ID.fullmatch(proof.player_id) is None:
            raise ProofRefused(f"{self._platform}: player_id is not a player id")
        return VerifiedIdentity(social_id=proof.player_id, trusted=False)

    async def profile(self, identity: VerifiedIdentity) -> Profile | None:
        return None
