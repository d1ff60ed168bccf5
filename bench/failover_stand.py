"""What the fault scorecard is played on: a server, the sandbox of vendors, and the configs that tie them."""

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiohttp import ClientSession

from bench.failover_cells import CALLER_LANES, DEFAULT_APP, SHORT_APP, CallerCell, Cell, Lane, Place, Stage
from vendors.sandbox.bill import Entry
from vendors.sandbox.faults import Fault, key_of
from vendors.sandbox.server import Running

NO_NAME = "gone.vendor.test"
"""A name that no DNS server knows."""
CALLER_APP = "callers"
"""The app that misses a reader for a moment only."""
APPS = {
    DEFAULT_APP: {},
    SHORT_APP: {"stream_s": 1.5},
    CALLER_APP: {"send_timeout_s": 0.3, "resume_grace_s": 0.2, "ping_after_s": 0.2, "lag_bytes": 65_536},
}
"""And their limits."""
WAIT_S = 0.2
_PATIENCE_S = 5
_PATIENT = {"first_output_s": _PATIENCE_S, "between_s": _PATIENCE_S}

FIRST = " ".join(f"first{number}" for number in range(1, 61))
"""What the faulty vendor would say, or hear."""
SECOND = "It was the second that answered, and nobody noticed."
ANSWER = "Well heard."
SPOKEN = "The boats go out with the tide, and nobody is in a hurry to be back before the evening comes."

_FASTER_THAN_PLAYED: dict[str, object] = {"pace_ms": 20}
"""Between pieces that play for 100."""
_KINDS: dict[Stage, str] = {"llm": "conversation", "stt": "recognition", "tts": "speech"}
_MODEL = "the-model"
_LIFTED = {"streams_per_user": 1_000_000}


@dataclass(slots=True)
class Stand:
    """`http` is the client's; `admin_token` may write configs. `sessions`: by app the token of a user."""

    url: str
    http: ClientSession
    admin_token: str
    sandbox: Running
    closed_port: int
    sessions: dict[str, str] = field(default_factory=dict)
    sound_audio: dict[str, bytes] = field(default_factory=dict)
    """By lane, what its sound voice says."""

    async def put(self, app: str, kind: str, name: str, value: Mapping[str, Any]) -> None:
        url = f"{self.url}/admin/api/configs/{app}/{kind}/{name}"
        headers = {"Authorization": f"Bearer {self.admin_token}"}
        async with self.http.put(url, json={"value": value}, headers=headers) as answer:
            if answer.status != 200:
                raise ValueError(f"{app}/{kind}/{name}: {await answer.text()}")

    def headers(self, app: str) -> dict[str, str]:
        return {"X-Service-App-Id": app, "X-Service-Session-Token": self.sessions[app]}

    async def offer(self, cell: Cell) -> None:
        """The configs of a cell's faulty strategy."""
        account = self._account(cell.lane, cell.row.place, cell.name, **_saying(cell.lane, FIRST), **cell.orders)
        waits = {"first_output_s": WAIT_S if cell.waits else _PATIENCE_S, "between_s": WAIT_S}
        await self._strategy(cell.app, cell.lane, cell.name, account, waits, **cell.more)

    async def offer_slow(self, cell: CallerCell) -> None:
        """A strategy that is still at it when its caller does what the cell is about."""
        stage, stops = cell.lane.stage, cell.row.manner == "stop reading"
        orders: dict[str, object] = {**_saying(cell.lane, FIRST), "pace_ms": 40}
        if stage in {"stt", "assess"}:
            orders = {"fault": Fault.HANG_BEFORE_OUTPUT}
        elif stops:
            orders = {"text": " ".join([SPOKEN] * 20)} if stage == "llm" else _FASTER_THAN_PLAYED
        account = self._account(cell.lane, Place.SANDBOX, cell.name, **orders)
        wav = {"audio_format": "wav"} if stops and stage == "tts" else {}
        await self._strategy(CALLER_APP, cell.lane, cell.name, account, _PATIENT, **wav)
        if stops and stage == "llm":  # words alone are too few to fill a connection
            await self._speak_too(cell)

    async def _speak_too(self, cell: CallerCell) -> None:
        voice = next(lane for lane in CALLER_LANES if lane.stage == "tts")
        name = f"{cell.name}.voice"
        account = self._account(voice, Place.SANDBOX, name, **_FASTER_THAN_PLAYED)
        await self._strategy(CALLER_APP, voice, name, account, _PATIENT, audio_format="wav")
        chat = {"account": cell.name, **cell.lane.call}
        await self.put(CALLER_APP, "conversation", cell.name, {"chat": chat, "speech": name})

    async def _strategy(
        self,
        app: str,
        lane: Lane,
        name: str,
        account: Mapping[str, Any],
        waits: Mapping[str, float],
        **more: object,
    ) -> None:
        await self.put(app, "vendor_accounts", name, account)
        call = {"account": name, "waits": waits, **lane.call, **more}
        if lane.stage == "assess":
            await self.put(app, "pronunciation", name, {"accounts": [call]})
            if name != sound(lane):
                second = {"account": sound(lane)}
                await self.put(app, "pronunciation", f"{name}.both", {"accounts": [call, second]})
            return
        kind = _KINDS[lane.stage]
        await self.put(app, kind, name, {"chat": call} if kind == "conversation" else call)
        if lane.stage == "stt":
            chat = {"account": _MODEL, "model": "gpt-4o-mini"}
            await self.put(app, "conversation", name, {"chat": chat, "recognition": name})

    def _account(self, lane: Lane, place: Place, name: str, **orders: object) -> dict[str, Any]:
        url = self.sandbox.url
        match place:
            case Place.REFUSED:
                url = f"http://127.0.0.1:{self.closed_port}"
            case Place.NO_NAME:
                url = f"http://{NO_NAME}:{self.closed_port}"
            case Place.BROKEN_TLS:
                url = self.sandbox.broken_tls_url
        return {"platform": lane.platform, "base_url": url + lane.root, "api_key": key_of(name=name, **orders)}

    async def settle(self, lanes: tuple[Lane, ...]) -> None:
        """Apps with their limits, a user of each, and a sound strategy for every lane."""
        for app, limits in APPS.items():
            await self.put(app, "apps", "default", {"title": app})
            await self.put(app, "auth", "default", {"require_sign": False})
            await self.put(app, "limits", "default", {**_LIFTED, **limits})
            key = key_of(name=_MODEL, text=ANSWER)
            root = f"{self.sandbox.url}/openai/v1"
            model = {"platform": "vendor_b_llm", "base_url": root, "api_key": key}
            await self.put(app, "vendor_accounts", _MODEL, model)
            for lane in lanes if app != CALLER_APP else ():
                name = sound(lane)
                account = self._account(lane, Place.SANDBOX, name, **_saying(lane, SECOND))
                await self._strategy(app, lane, name, account, _PATIENT)
            self.sessions[app] = await self._login(app)

    async def _login(self, app: str) -> str:
        device = {"device": {"id": f"bench-{secrets.token_hex(8)}"}}
        headers = {"X-Service-App-Id": app}
        async with self.http.post(f"{self.url}/bp/user/login", json=device, headers=headers) as answer:
            token: str = (await answer.json())["user"]["session"]["session_token"]
            return token

    def calls(self, request_id: str) -> list[Entry]:
        """What the sandbox was asked for one request of ours."""
        return [entry for entry in self.sandbox.bill.since() if entry.request_id == request_id]

    async def ended(self, request_id: str, *, within_s: float) -> bool:
        """Whether every call for a request has ended, now or soon."""
        try:
            async with asyncio.timeout(within_s):
                for call in self.calls(request_id):
                    await self.sandbox.bill.wait(partial(_has_ended, call.id))
        except TimeoutError:
            return False
        return True


def _has_ended(number: int, call: Entry) -> bool:
    return call.id == number and call.ended is not None


def _saying(lane: Lane, text: str) -> dict[str, object]:
    """The order to say or to hear `text`; a voice says what it is asked for."""
    return {} if lane.stage == "tts" else {"text": text}


def sound(lane: Lane) -> str:
    """The name of a lane's sound strategy."""
    return f"sound.{lane.name}".replace(" ", ".")


@asynccontextmanager
async def standing(url: str, admin_token: str, sandbox: Running, lanes: tuple[Lane, ...]) -> AsyncIterator[Stand]:
    """A stand on a running server, ready to be played on."""
    with closing(socket.socket()) as closed:
        closed.bind(("127.0.0.1", 0))  # held, but nobody listens
        async with ClientSession() as http:
            stand = Stand(url, http, admin_token, sandbox, closed.getsockname()[1])
            await stand.settle(lanes)
            yield stand
