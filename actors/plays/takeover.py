"""Take over a durable stream of a dead process: claim it, rebuild its turn, and continue the answer."""

import asyncio
import time
from functools import partial

import structlog
from pydantic import ValidationError

from actors.clients.strategies import Strategy
from actors.plays.continuation import Continued, SaidText, SavedTurn
from actors.plays.conversation import continue_turn
from actors.plays.plan import TurnPlan
from actors.runtime.actor import Actor
from actors.runtime.admission import AdmissionControl, Said, StreamRequest
from actors.runtime.context import Owner, Resources
from actors.runtime.receipt import Receipt
from actors.runtime.supervisor import Supervisor
from storage.accounts.ended_sessions import SessionKey
from storage.accounts.sessions import not_ended
from storage.configs.kinds.limits import Limits
from storage.conversations import continuations, turn_rows
from storage.conversations.admission import Admissions, IdempotencyKey, Slot, StreamLocation
from storage.conversations.continuations import Claim
from storage.conversations.detached_logs import DetachedLog
from streams.keyed_lock import KeyedLock
from streams.log import EventLog
from streams.wire.codec import now_ms
from streams.wire.errors import ServiceError

log = structlog.get_logger()


class Takeovers:
    """Takes over streams for this process. Of all processes that try, one succeeds."""

    def __init__(
        self, resources: Resources, supervisor: Supervisor, admissions: Admissions, control: AdmissionControl
    ) -> None:
        self._resources = resources
        self._supervisor = supervisor
        self._admissions = admissions
        self._control = control
        self._locks = KeyedLock()

    async def find(
        self, owner: Owner, location: StreamLocation, limits: Limits, *, dead: bool
    ) -> Actor | StreamLocation | None:
        """Take over a stream whose process does not have it, if that process is `dead` and the stream can continue.

        Returns its location if another process has taken it over, and `None` if nobody can continue it.
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
                return claim
            try:
                actor = await self._continue(slot, claim, limits, dead=location.process)
            except (Exception, asyncio.CancelledError):
                # Another process, or the next reader here, tries again.
                await continuations.give_back(self._resources.valkey, slot, process=process, dead=location.process)
                raise
            log.info("stream.taken_over", stream_id=slot.stream_id, dead=location.process, continued=bool(actor))
            if actor is None:  # The conversation is free for another turn, and nobody tries again.
                await self._admissions.release(slot, readable_s=limits.readable_s)
            return actor

    async def _continue(self, slot: Slot, claim: Claim, limits: Limits, *, dead: str) -> Actor | None:
        """Start the rest of a claimed stream. Return `None` if what remains of it does not suffice."""
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
        if frames is None or saved.writer not in names:
            return None
        arrived = time.monotonic() - max(0, now_ms() - saved.began_ms) / 1000
        said, text = self._said(frames, saved, limits, arrived=arrived)
        continued = Continued(saved, plan.strategies, text)
        session = SessionKey(owner.app_id, saved.session) if saved.session is not None else None
        async with resources.database.connection() as conn:
            if session is not None and not await not_ended(conn, [session]):
                return None
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
