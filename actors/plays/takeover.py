"""Take over a durable stream of a dead process: claim it, rebuild its turn, and continue or store the answer."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from math import inf

import structlog
from pydantic import ValidationError

from actors.clients.strategies import Strategy
from actors.plays.continuation import Continued, SaidText, SavedTurn, process_ended
from actors.plays.conversation import continue_turn
from actors.plays.plan import TurnPlan
from actors.runtime.actor import Actor
from actors.runtime.admission import AdmissionControl, Said, StreamRequest
from actors.runtime.context import Owner, Resources
from actors.runtime.receipt import Receipt
from actors.runtime.supervisor import Supervisor
from storage.accounts.ended_sessions import SessionKey
from storage.accounts.sessions import not_ended
from storage.configs.kinds.limits import LIMITS, Limits
from storage.configs.store import ConfigStore
from storage.conversations import continuations, turn_rows
from storage.conversations.admission import Admissions, IdempotencyKey, Slot, StreamLocation
from storage.conversations.continuations import Claim
from storage.conversations.dead_turns import RunningTurn
from storage.conversations.detached_logs import DetachedLog
from streams.keyed_lock import KeyedLock
from streams.log import EventLog
from streams.tasks import background
from streams.wire.codec import now_ms
from streams.wire.errors import InvalidSession, ServiceError

log = structlog.get_logger()

_END_TIMEOUT_S = 10


class Takeovers:
    """Takes over streams for this process. Of all processes that try, one succeeds."""

    def __init__(
        self,
        resources: Resources,
        supervisor: Supervisor,
        admissions: Admissions,
        control: AdmissionControl,
        configs: ConfigStore,
    ) -> None:
        self._configs = configs
        self._resources = resources
        self._supervisor = supervisor
        self._admissions = admissions
        self._control = control
        self._locks = KeyedLock()

    async def find(
        self, owner: Owner, location: StreamLocation, limits: Limits, *, dead: bool, ends: bool = False
    ) -> Actor | StreamLocation | None:
        """Take over a stream whose process does not have it, if that process is `dead`.

        The answer is continued if it can be, and not with `ends`. Otherwise what was said is stored, and the stream
        ends with an error. Returns its location if another process has taken it over, or will continue it, and
        `None` if nothing was saved, or if nobody can continue it and its process may still be alive.
        """
        async with self._locks.hold(location.stream_id):
            if (actor := self._supervisor.find(location.stream_id, owner)) is not None:
                return actor
            self._supervisor.check_room(limits)
            process = self._resources.heartbeat.process
            slot = Slot(*owner, location.stream_id, location.conversation_id, durable=True)
            claim = await continuations.claim(
                self._resources.valkey, slot, known=location.process, dead=dead, process=process
            )
            if not isinstance(claim, Claim):
                if claim is None or claim.process != location.process:
                    return claim
                value = await continuations.find(self._resources.valkey, slot)
                return claim if value is not None and _may_continue(value, within_s=inf) else None
            try:
                refused = process_ended() if ends else None
                actor = await self._continue(slot, claim, limits, dead=location.process, refused=refused)
            except (Exception, asyncio.CancelledError):
                # Another process, or the next reader here, tries again.
                await continuations.give_back(self._resources.valkey, slot, process=process, dead=location.process)
                raise
            log.info("stream.taken_over", stream_id=slot.stream_id, dead=location.process, continued=bool(actor))
            if actor is None:  # The conversation is free for another turn, and nobody tries again.
                await self._admissions.release(slot, readable_s=limits.readable_s)
            return actor

    async def settle(self, turn: RunningTurn, *, gives_up: bool) -> bool:
        """Store what a stream of a dead process has said, as `Settle` describes."""
        owner, limits = Owner(turn.app_id, turn.uid), self._configs.singleton(LIMITS, turn.app_id)
        slot = Slot(*owner, turn.stream_id, turn.conversation_id, durable=True)
        value = await continuations.find(self._resources.valkey, slot)
        if value is None:
            return True
        if not gives_up and _may_continue(value, within_s=limits.stream_s):
            return False
        location = await self._admissions.find(*owner, turn.stream_id)
        if location is None:
            return True
        heartbeat = self._resources.heartbeat
        if location.process != heartbeat.process and not await heartbeat.dead([location.process]):
            return False
        found = await self.find(owner, location, limits, dead=True, ends=True)
        if isinstance(found, Actor):
            done, _ = await asyncio.wait([found.outcome], timeout=_END_TIMEOUT_S)
            return bool(done)
        return found is None

    async def _continue(
        self, slot: Slot, claim: Claim, limits: Limits, *, dead: str, refused: ServiceError | None
    ) -> Actor | None:
        """Start the rest of a claimed stream. Return `None` if what remains of it does not suffice.

        `refused`: why the answer is not to be continued.
        """
        resources, owner = self._resources, Owner(slot.app_id, slot.user_id)
        process = resources.heartbeat.process
        detached = DetachedLog(
            resources.valkey,
            app_id=slot.app_id,
            user_id=slot.user_id,
            stream_id=slot.stream_id,
            process=process,
        )
        await detached.take_over(keep_s=limits.max_stream_s + limits.readable_s)
        frames = await detached.read_all(max_bytes=limits.log_bytes)
        try:
            saved = SavedTurn.model_validate_json(claim.saved)
            plan = self._plan(owner, saved)
        except (ValidationError, ServiceError):  # Saved by another version, or its strategies are gone.
            return None
        names = [strategy.name for strategy in plan.strategies if isinstance(strategy, Strategy)]
        if frames is None or saved.writer not in (None, *names):
            return None
        arrived = time.monotonic() - max(0, now_ms() - saved.began_ms) / 1000
        said, text = self._said(frames, saved, limits, arrived=arrived)
        session = SessionKey(owner.app_id, saved.session) if saved.session is not None else None
        async with resources.database.connection() as conn:
            if session is not None and not await not_ended(conn, [session]):
                refused = InvalidSession("the session has ended")
            if not await turn_rows.take_over(
                conn,
                owner.app_id,
                conversation_id=saved.conversation_id,
                record_id=saved.record_id,
                stream_id=slot.stream_id,
                dead=[dead, saved.process],
                process=process,
                finished=saved.finish_reason is not None,
                clock_offset_s=resources.clock.offset_s(owner.app_id),
            ):
                return None
        continued = Continued(saved, plan.strategies, text, refused=refused)
        request = StreamRequest(
            "conversation",
            partial(continue_turn, plan=plan, continued=continued),
            owner,
            limits,
            request_id=saved.request_id,
            arrived=arrived,
            waited_s=0,
            session=session,
            conversation_id=saved.conversation_id,
            durable=True,
        )
        held = slot._replace(idempotency_key=IdempotencyKey(*saved.key) if saved.key else None)
        return self._control.take_over(request, held, said, lifetime_s=claim.lifetime_s)

    def _plan(self, owner: Owner, saved: SavedTurn) -> TurnPlan:
        """Return the plan of a saved turn, with the strategies as they are now."""
        return TurnPlan(
            conversation_id=saved.conversation_id,
            new=False,
            spoken=False,
            strategies=self._resources.strategies.conversations(owner.app_id, saved.strategies),
            language_code=saved.language_code,
            target_language_code=saved.target_language_code,
            voice=saved.voice,
            stt_prompt=None,
            params=saved.params,
        )

    @staticmethod
    def _said(frames: list[bytes], saved: SavedTurn, limits: Limits, *, arrived: float) -> tuple[Said, SaidText]:
        receipt = Receipt(arrived, latency_ms=saved.latency_ms)
        events, text = (
            EventLog(keep_bytes=limits.log_bytes, lag_bytes=limits.lag_bytes),
            SaidText(receipt, began_ms=saved.began_ms),
        )
        for frame in frames:
            events.put(frame)
            text.read(frame)
        return Said(receipt, events), text


@asynccontextmanager
async def open_takeovers(
    resources: Resources,
    supervisor: Supervisor,
    admissions: Admissions,
    control: AdmissionControl,
    configs: ConfigStore,
) -> AsyncIterator[Takeovers]:
    """Within the block, store what streams of dead processes have said before their turns are ended."""
    takeovers = Takeovers(resources, supervisor, admissions, control, configs)
    dead_turns = resources.turns.dead_turns
    dead_turns.settle = takeovers.settle
    async with background(dead_turns.keep_sweeping()):
        yield takeovers


def _may_continue(value: bytes, *, within_s: float) -> bool:
    """Return whether the saved stream may be continued, if its request arrived less than `within_s` ago."""
    try:
        saved = SavedTurn.model_validate_json(value)
    except ValidationError:  # Saved by another version.
        return False
    return saved.continues and now_ms() - saved.began_ms < within_s * 1000
