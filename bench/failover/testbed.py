"""The testbed of the fault scorecard: a server, the vendor sandbox, and the configs that connect them."""

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiohttp import ClientSession

from bench.failover.cells import (
    CALLER_STAGES,
    DEFAULT_APP,
    SHORT_APP,
    CallerCell,
    Cell,
    Endpoint,
    Stage,
    VendorStage,
)
from vendors.sandbox.bill import BilledCall
from vendors.sandbox.faults import Fault, key_of
from vendors.sandbox.server import Running

NO_NAME = "gone.vendor.test"
"""A host name that does not exist."""
CALLER_APP = "callers"
"""The app with short timeouts for readers that leave or stop reading."""
APPS = {
    DEFAULT_APP: {},
    SHORT_APP: {"stream_s": 1.5},
    CALLER_APP: {"send_timeout_s": 0.3, "resume_grace_s": 0.2, "ping_after_s": 0.2, "lag_bytes": 65_536},
}
"""The apps, with their limits."""
SHORT_TIMEOUT_S = 0.2
_LONG_TIMEOUT_S = 5
_LONG_TIMEOUTS = {"first_output_s": _LONG_TIMEOUT_S, "between_s": _LONG_TIMEOUT_S}

FIRST = " ".join(f"first{number}" for number in range(1, 61))
"""The text that the faulty vendor answers with or recognizes."""
SECOND = "It was the second that answered, and nobody noticed."
ANSWER = "Well heard."
SPOKEN = "The boats go out with the tide, and nobody is in a hurry to be back before the evening comes."

_FASTER_THAN_PLAYED: dict[str, object] = {"pace_ms": 20}
"""Time between pieces of audio that play for 100 ms."""
_KINDS: dict[Stage, str] = {"llm": "conversation", "stt": "recognition", "tts": "speech"}
_MODEL = "the-model"
_RAISED_LIMITS = {"streams_per_user": 1_000_000}


@dataclass(slots=True)
class FaultTestbed:
    """The running testbed. `sessions` has the session token of a user for each app."""

    url: str
    http: ClientSession
    admin_token: str
    sandbox: Running
    closed_port: int
    sessions: dict[str, str] = field(default_factory=dict)
    healthy_audio: dict[str, bytes] = field(default_factory=dict)
    """The audio of each vendor stage's healthy strategy, by name of the vendor stage."""

    async def put(self, app: str, kind: str, name: str, value: Mapping[str, Any]) -> None:
        url = f"{self.url}/admin/api/configs/{app}/{kind}/{name}"
        headers = {"Authorization": f"Bearer {self.admin_token}"}
        async with self.http.put(url, json={"value": value}, headers=headers) as answer:
            if answer.status != 200:
                raise ValueError(f"{app}/{kind}/{name}: {await answer.text()}")

    def headers(self, app: str) -> dict[str, str]:
        return {"X-Service-App-Id": app, "X-Service-Session-Token": self.sessions[app]}

    async def configure(self, cell: Cell) -> None:
        """Write the configs of a cell's faulty strategy."""
        account = self._account(
            cell.vendor_stage,
            cell.row.endpoint,
            cell.name,
            **_text_order(cell.vendor_stage, FIRST),
            **cell.key_options,
        )
        waits = {
            "first_output_s": SHORT_TIMEOUT_S if cell.times_out else _LONG_TIMEOUT_S,
            "between_s": SHORT_TIMEOUT_S,
        }
        await self._strategy(cell.app, cell.vendor_stage, cell.name, account, waits, **cell.options)

    async def configure_slow(self, cell: CallerCell) -> None:
        """Write the configs of a strategy that is still running when the caller's fault occurs."""
        stage, stops_reading = cell.vendor_stage.stage, cell.row.action == "stop reading"
        key_options: dict[str, object] = {**_text_order(cell.vendor_stage, FIRST), "pace_ms": 40}
        if stage in {"stt", "assess"}:
            key_options = {"fault": Fault.HANG_BEFORE_OUTPUT}
        elif stops_reading:
            key_options = {"text": " ".join([SPOKEN] * 20)} if stage == "llm" else _FASTER_THAN_PLAYED
        account = self._account(cell.vendor_stage, Endpoint.SANDBOX, cell.name, **key_options)
        wav = {"audio_format": "wav"} if stops_reading and stage == "tts" else {}
        await self._strategy(CALLER_APP, cell.vendor_stage, cell.name, account, _LONG_TIMEOUTS, **wav)
        if stops_reading and stage == "llm":  # Text alone is too small to fill the connection's buffers.
            await self._add_speech(cell)

    async def _add_speech(self, cell: CallerCell) -> None:
        voice = next(vendor_stage for vendor_stage in CALLER_STAGES if vendor_stage.stage == "tts")
        name = f"{cell.name}.voice"
        account = self._account(voice, Endpoint.SANDBOX, name, **_FASTER_THAN_PLAYED)
        await self._strategy(CALLER_APP, voice, name, account, _LONG_TIMEOUTS, audio_format="wav")
        chat = {"account": cell.name, **cell.vendor_stage.call}
        await self.put(CALLER_APP, "conversation", cell.name, {"chat": chat, "speech": name})

    async def _strategy(
        self,
        app: str,
        vendor_stage: VendorStage,
        name: str,
        account: Mapping[str, Any],
        waits: Mapping[str, float],
        **options: object,
    ) -> None:
        await self.put(app, "vendor_accounts", name, account)
        call = {"account": name, "waits": waits, **vendor_stage.call, **options}
        if vendor_stage.stage == "assess":
            await self.put(app, "pronunciation", name, {"accounts": [call]})
            if name != healthy_strategy(vendor_stage):
                second = {"account": healthy_strategy(vendor_stage)}
                await self.put(app, "pronunciation", f"{name}.both", {"accounts": [call, second]})
            return
        kind = _KINDS[vendor_stage.stage]
        await self.put(app, kind, name, {"chat": call} if kind == "conversation" else call)
        if vendor_stage.stage == "stt":
            chat = {"account": _MODEL, "model": "gpt-4o-mini"}
            await self.put(app, "conversation", name, {"chat": chat, "recognition": name})

    def _account(
        self, vendor_stage: VendorStage, endpoint: Endpoint, name: str, **key_options: object
    ) -> dict[str, Any]:
        url = self.sandbox.url
        match endpoint:
            case Endpoint.REFUSED:
                url = f"http://127.0.0.1:{self.closed_port}"
            case Endpoint.NO_NAME:
                url = f"http://{NO_NAME}:{self.closed_port}"
            case Endpoint.BROKEN_TLS:
                url = self.sandbox.broken_tls_url
        return {
            "platform": vendor_stage.platform,
            "base_url": url + vendor_stage.root,
            "api_key": key_of(name=name, **key_options),
        }

    async def set_up(self, vendor_stages: tuple[VendorStage, ...]) -> None:
        """Write the configs of all apps, with a healthy strategy per vendor stage, and log in a user of each."""
        for app, limits in APPS.items():
            await self.put(app, "apps", "default", {"title": app})
            await self.put(app, "auth", "default", {"require_sign": False})
            await self.put(app, "limits", "default", {**_RAISED_LIMITS, **limits})
            key = key_of(name=_MODEL, text=ANSWER)
            root = f"{self.sandbox.url}/openai/v1"
            model = {"platform": "vendor_b_llm", "base_url": root, "api_key": key}
            await self.put(app, "vendor_accounts", _MODEL, model)
            for vendor_stage in vendor_stages if app != CALLER_APP else ():
                name = healthy_strategy(vendor_stage)
                account = self._account(vendor_stage, Endpoint.SANDBOX, name, **_text_order(vendor_stage, SECOND))
                await self._strategy(app, vendor_stage, name, account, _LONG_TIMEOUTS)
            self.sessions[app] = await self._login(app)

    async def _login(self, app: str) -> str:
        device = {"device": {"id": f"bench-{secrets.token_hex(8)}"}}
        headers = {"X-Service-App-Id": app}
        async with self.http.post(f"{self.url}/bp/user/login", json=device, headers=headers) as answer:
            token: str = (await answer.json())["user"]["session"]["session_token"]
            return token

    def calls(self, request_id: str) -> list[BilledCall]:
        """Return the calls that the sandbox received for one request."""
        return [entry for entry in self.sandbox.bill.since() if entry.request_id == request_id]

    async def ended(self, request_id: str, *, within_s: float) -> bool:
        """Wait for all calls of a request to end. Return whether they ended within `within_s`."""
        try:
            async with asyncio.timeout(within_s):
                for call in self.calls(request_id):
                    await self.sandbox.bill.wait(partial(_has_ended, call.id))
        except TimeoutError:
            return False
        return True


def _has_ended(number: int, call: BilledCall) -> bool:
    return call.id == number and call.ended is not None


def _text_order(vendor_stage: VendorStage, text: str) -> dict[str, object]:
    """Return the order to answer with `text` or to recognize it. Voices need none: they read the given text."""
    return {} if vendor_stage.stage == "tts" else {"text": text}


def healthy_strategy(vendor_stage: VendorStage) -> str:
    """Return the name of a vendor stage's healthy strategy."""
    return f"healthy.{vendor_stage.name}".replace(" ", ".")


@asynccontextmanager
async def open_testbed(
    url: str, admin_token: str, sandbox: Running, vendor_stages: tuple[VendorStage, ...]
) -> AsyncIterator[FaultTestbed]:
    """Set up a testbed on a running server."""
    with closing(socket.socket()) as closed:
        closed.bind(("127.0.0.1", 0))  # The port is reserved, but nothing listens on it.
        async with ClientSession() as http:
            testbed = FaultTestbed(url, http, admin_token, sandbox, closed.getsockname()[1])
            await testbed.set_up(vendor_stages)
            yield testbed
