"""The choices at the sandbox's sign-in providers: who signs in, and how the sign-in fails.

`GET /_sandbox/sign_in` lists the people and, by provider, the faults. The fields of a person and those of a fault
together are a body of `_issue`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from aiohttp import web

from streams.wire.codec import dumps
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin.grants import Person
from vendors.sandbox.signin.portraits import Portrait

_DAY_S = 86_400

Faults = Mapping[str, Mapping[str, Any]]
"""The fields of `_issue` that make a sign-in fail, by the name of the fault."""


@dataclass(frozen=True, slots=True)
class Choices:
    """A provider: its name for readers, and the faults that its proofs can have."""

    title: str
    faults: Faults
    verifies_email: bool = False
    """Whether it reports an email address of the person, and whether that is verified."""


_ANY: Faults = {"expired": {"age_s": _DAY_S}, "other_app": {"app": "app-of-others"}}
"""Faults of the proof itself, which every provider has."""
_CALLS: Faults = {name: {"fault": name} for name in ("rate_limited", "server_error", "unavailable", "redirect")}
_TIMEOUT: Faults = {"timeout": {"fault": "hang_before_headers"}}
_CALLED: Faults = {"refused": {"fault": "unauthorized"}, **_ANY, **_TIMEOUT, **_CALLS}
"""Faults of a provider that is called with each proof."""
_SIGNED: Faults = {"refused": {"token_fault": "forged"}, **_ANY, "unsigned": {"token_fault": "alg_none"}}
"""Faults of id tokens. Their keys were fetched before, so the provider cannot be late."""

PROVIDERS: Mapping[str, Choices] = {
    "alipay": Choices("Alipay", _CALLED),
    "amazon": Choices("Amazon", _CALLED),
    "apple": Choices("Apple", {**_SIGNED, **_TIMEOUT, **_CALLS}, verifies_email=True),
    "facebook": Choices("Facebook", _CALLED),
    "game_center": Choices("Game Center", {"refused": {"key": "self-signed"}, **_ANY}),
    "google": Choices("Google", _SIGNED, verifies_email=True),
    "instagram": Choices("Instagram", _CALLED),
    "jd": Choices("JD.com", _CALLED),
    "kakao": Choices("Kakao", _CALLED, verifies_email=True),
    "line": Choices("LINE", _CALLED),
    "microsoft": Choices("Microsoft", _SIGNED),
    "qq": Choices("QQ", _CALLED),
    "taobao": Choices("Taobao", _CALLED),
    "wechat": Choices("WeChat", _CALLED),
    "wechat_mini": Choices("WeChat mini program", _CALLED),
    "weibo": Choices("Weibo", _CALLED),
}


@dataclass(frozen=True, slots=True)
class Somebody:
    subject: str
    """The person's id, which has a form that all providers use."""
    person: Person
    portrait: Portrait


PEOPLE = (
    Somebody(
        "100000000000000001",
        Person(),
        Portrait(background="#f6d6c9", skin="#f0c8a8", hair="#2b1d18", clothes="#b4432f", long_hair=True),
    ),
    Somebody(
        "100000000000000002",
        Person(
            name="Jonas Weber",
            email="jonas@example.test",
            email_verified=False,
            gender="male",
            region="DE",
            province="Bayern",
            city="München",
        ),
        Portrait(background="#cfe0ee", skin="#f3d3bd", hair="#9a6a35", clothes="#2f5d8a"),
    ),
    Somebody(
        "100000000000000003",
        Person(
            name="Amara Okafor",
            email="amara@example.test",
            region="NG",
            province="Lagos",
            city="Ikeja",
        ),
        Portrait(background="#dfe7c8", skin="#7a4a2e", hair="#1d1512", clothes="#c08a1e", long_hair=True),
    ),
)


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    return [
        web.get("/_sandbox/sign_in", _choices),
        web.get("/_sandbox/portraits/{subject}.svg", _portrait),
    ]


async def _choices(request: web.Request) -> web.Response:
    origin = f"{request.scheme}://{request.host}"
    people = []
    for holder in PEOPLE:
        avatar = f"{origin}/_sandbox/portraits/{holder.subject}.svg"
        people.append({"subject": holder.subject, "profile": {**holder.person.model_dump(), "avatar": avatar}})
    providers = {name: asdict(provider) for name, provider in PROVIDERS.items()}
    value = {"people": people, "providers": providers}
    return web.Response(body=dumps(value), content_type="application/json")


async def _portrait(request: web.Request) -> web.Response:
    subject = request.match_info["subject"]
    found = next((holder.portrait for holder in PEOPLE if holder.subject == subject), None)
    if found is None:
        raise web.HTTPNotFound
    return web.Response(text=found.svg(), content_type="image/svg+xml")
