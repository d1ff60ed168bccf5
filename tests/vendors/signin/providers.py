"""The sign-in providers that redeem codes or check access tokens, as rows for tests with the sandbox."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import aiohttp
from pydantic import SecretStr

from streams.wire.codec import dumps, loads
from vendors.http.transport import VendorHttp
from vendors.sandbox.server import Running
from vendors.sandbox.signin.alipay_keys import APP_PRIVATE_KEY, PUBLIC_KEY
from vendors.sandbox.signin.grants import REDIRECT_URI, SECRET
from vendors.signin.catalog import PROVIDERS
from vendors.signin.protocols import Profile, Proof, SignIn, SignInApp

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
NAME, AVATAR, EMAIL = "Mei Lin", "https://pictures.test/mei.png", "mei@example.test"
PLACE = {"province": "北京", "city": "朝阳区"}


@dataclass(frozen=True)
class Row:
    """A provider, and what the sandbox's person becomes there.

    `stages`: the calls that prove an identity. `sends_app`: the provider tells to which app a token was issued.
    """

    name: str
    platform: str
    profile: Profile | None
    stages: tuple[str, ...]
    app: str = "sandbox-app"
    subject: str = "9007199254740993"
    """Not a number that a float can represent."""
    openid: bool = False
    xid: str = ""
    access_token: bool = True
    refresh_token: bool = False
    lifetime_s: int = 7200

    @property
    def by_code(self) -> bool:
        return "token" in self.stages

    def config(self, base_url: str, **fields: Any) -> SignInApp:
        app = SignInApp(
            self.platform,
            audiences=("first-app", self.app),
            base_url=base_url,
            client_id=self.app,
            client_secret=SecretStr(SECRET),
            redirect_uri=REDIRECT_URI,
            private_key=SecretStr(APP_PRIVATE_KEY),
            public_key=PUBLIC_KEY,
        )
        return replace(app, **fields)

    def client(self, http: VendorHttp, sandbox: Running, **fields: Any) -> SignIn:
        return self.client_at(http, f"{sandbox.url}/{self.name}", **fields)

    def client_at(self, http: VendorHttp, base_url: str, **fields: Any) -> SignIn:
        return PROVIDERS[self.name](http, self.config(base_url, **fields))

    async def proof(self, sandbox: Running, **issue: Any) -> Proof:
        """Let a person sign in at the sandbox."""
        body = {"subject": self.subject, "app": self.app, **issue}
        async with aiohttp.ClientSession() as session:
            answer = await session.post(f"{sandbox.url}/{self.name}/_issue", data=dumps(body))
            fields = loads(await answer.read())
        assert answer.status == 200, fields
        return Proof(
            **{name: fields[name] for name in fields if self.platform == "im_network_a" or name != "open_id"}
        )


def _profile(**fields: Any) -> Profile:
    return Profile(**{"user_name": NAME, "avatar": AVATAR, **fields})


ROWS = (
    Row("alipay", "payment_wallet_a", _profile(**PLACE, gender=2), ("token",), refresh_token=True),
    Row("amazon", "retail_platform", Profile(NAME), ("token", "check"), refresh_token=True),
    Row("instagram", "photo_network", _profile(), ("token",), lifetime_s=0),
    Row("jd", "retail_platform", _profile(gender=2), ("token",), xid="o*9007199254740993", refresh_token=True),
    Row("kakao", "chat_network", _profile(email=EMAIL, gender=2), ("check",), app="314159"),
    Row("line", "chat_network", _profile(), ("check", "profile")),
    Row("qq", "im_network_a", _profile(**PLACE, gender=2), ("check",), lifetime_s=0),
    Row("taobao", "retail_platform", Profile(NAME), ("token",), refresh_token=True),
    Row(
        "wechat",
        "im_network_b",
        _profile(region="CN", **PLACE, gender=2),
        ("token",),
        openid=True,
        refresh_token=True,
    ),
    Row("wechat_mini", "im_network_b", None, ("token",), openid=True, access_token=False, lifetime_s=0),
    Row("weibo", "microblog", _profile(**PLACE, gender=2), ("check",)),
)
BY_NAME = {row.name: row for row in ROWS}
