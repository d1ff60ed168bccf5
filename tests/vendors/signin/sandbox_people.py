"""People who sign in at the sandbox's providers, and our app there."""

from dataclasses import dataclass, replace
from typing import Any

import aiohttp
from pydantic import SecretStr

from streams.wire.codec import dumps, loads
from vendors.http.transport import VendorHttp
from vendors.sandbox.server import Running
from vendors.sandbox.signin.apple import APP_PRIVATE_KEY, KEY_ID, TEAM_ID
from vendors.sandbox.signin.game_center_keys import ROOT
from vendors.sandbox.signin.grants import SECRET
from vendors.signin.catalog import PROVIDERS
from vendors.signin.protocols import Proof, SignIn, SignInApp

APP = "sandbox-app"
FIELDS = {"identity_token": "id_token"}
"""Fields of the interface with other names in `Proof`."""


@dataclass(frozen=True)
class Provider:
    """A provider of the sandbox. `proof_field` is the field of `Proof` with the id token."""

    name: str
    platform: str
    subject: str
    proof_field: str = "id_token"
    issue: tuple[tuple[str, Any], ...] = ()
    vendor: str = ""

    def client(self, http: VendorHttp, sandbox: Running, **fields: Any) -> SignIn:
        app = SignInApp(
            self.platform,
            audiences=("first-app", APP),
            base_url=f"{sandbox.url}/{self.name}",
            client_id=APP,
            client_secret=SecretStr(SECRET),
            key_id=KEY_ID,
            team_id=TEAM_ID,
            private_key=SecretStr(APP_PRIVATE_KEY) if self.name == "apple" else SecretStr(""),
            bundle_ids=("com.first.app", APP) if self.name == "game_center" else (),
            key_roots=(ROOT,),
        )
        return PROVIDERS[self.name](http, replace(app, **fields))

    async def proof(self, sandbox: Running, **issue: Any) -> Proof:
        """Let a person sign in."""
        body = {"subject": self.subject, **dict(self.issue), **issue}
        async with aiohttp.ClientSession() as session:
            answer = await session.post(f"{sandbox.url}/{self.name}/_issue", data=dumps(body))
            fields = loads(await answer.read())
        assert answer.status == 200, fields
        return Proof(**{FIELDS.get(name, name): value for name, value in fields.items()})


APPLE = Provider("apple", "ios_vendor_id", "001234.abcdef.0123")
GOOGLE = Provider("google", "search_vendor_id", "108000000000000000001", vendor="google_sign_in")
LIMITED = Provider("facebook", "social_network_a", "9007199254740993", "access_token", (("limited", True),))
FACEBOOK = replace(LIMITED, issue=())
MICROSOFT = Provider("microsoft", "software_vendor_id", "3b1a2f4e-0000-4000-8000-00000000beef", "access_token")
GAME_CENTER = Provider("game_center", "ios_games_service", "T:_0123456789abcdef")
ID_TOKENS = (APPLE, GOOGLE, LIMITED, MICROSOFT)
