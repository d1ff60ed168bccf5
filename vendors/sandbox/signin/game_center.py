"""The sandbox's Game Center: certificates, and signatures over the ids of players."""

import time
from base64 import b64encode
from secrets import token_bytes

from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from pydantic import Field

from streams.wire.codec import dumps, loads_request
from streams.wire.model import Model
from vendors.sandbox.calls import Call, Refusal
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin.game_center_keys import certificate, signing_key
from vendors.sandbox.signin.grants import APP, Person, dialect

_ERROR = Refusal(503, b"Service Unavailable", {"Content-Type": "text/html"})
_NOT_FOUND = Refusal(404, b"Not Found", {"Content-Type": "text/html"})
_DIALECT = dialect("game_center", busy=_ERROR, limited=Refusal(429, b""), denied=_NOT_FOUND)
_KEYS = "https://static.gc.apple.com/public-key"


class PlayerIssue(Model, extra="forbid"):
    """The body of `_issue`: the ids that sign in, and which of them is signed."""

    subject: str
    """The `team_player_id`, or the `player_id` if `signs` says so."""
    app: str = APP
    """The bundle id."""
    signs: str = "team_player_id"
    other_id: str = ""
    """The other id, which is sent but not signed."""
    age_s: int = 0
    profile: Person = Field(default_factory=Person)
    """Ignored: Game Center reports no profile."""
    key: str = "gc-prod-10"
    """The name of the certificate."""


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    return [
        web.post("/game_center/_issue", _issue),
        sandbox.get("/game_center/public-key/{name}.cer", _DIALECT, "key", _key),
    ]


async def _issue(request: web.Request) -> web.Response:
    issue = PlayerIssue.of(loads_request(await request.read()))
    timestamp = (int(time.time()) - issue.age_s) * 1000
    salt = token_bytes(4)
    message = f"{issue.subject}{issue.app}".encode() + timestamp.to_bytes(8, "big") + salt
    other = "player_id" if issue.signs == "team_player_id" else "team_player_id"
    answer = {
        issue.signs: issue.subject,
        other: issue.other_id,
        "public_key_url": f"{_KEYS}/{issue.key}.cer",
        "salt": b64encode(salt).decode(),
        "signature": b64encode(signing_key().sign(message, PKCS1v15(), SHA256())).decode(),
        "timestamp": timestamp,
    }
    return web.Response(body=dumps(answer), content_type="application/json")


async def _key(call: Call) -> None:
    found = certificate(call.request.match_info["name"])
    if found is None:
        raise _NOT_FOUND
    await call.answer(found, empty=b"", content_type="application/pkix-cert")
