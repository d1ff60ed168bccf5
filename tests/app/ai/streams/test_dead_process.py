"""When a process has died, its slots are free and its turns are ended."""

from typing import Any

from storage.conversations import turn_rows
from storage.conversations.admission import Admissions, Slot
from storage.conversations.turn_rows import NewTurn
from storage.processes.heartbeats import Heartbeat
from streams.wire.ids import new_id
from tests.app.ai.conftest import Talk
from tests.running.servers import Server


async def left_running(talk: Talk, server: Server) -> str:
    """Return a conversation whose only turn was running in a process that was killed."""
    services, conversation_id = server.services, new_id()
    dead = Heartbeat(services.valkey, services.database, "dead", dict)
    slot = Slot("default", talk.uid, new_id(), conversation_id)
    assert await Admissions(services.valkey, dead).acquire(slot, limit=4, lifetime_s=600) is None
    message: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "Hello?", "source": {}}]}
    async with services.database.connection() as conn:
        turn = NewTurn(
            app_id="default",
            conversation_id=conversation_id,
            uid=talk.uid,
            content=[message],
            stream_id=slot.stream_id,
            max_stream_s=600,
            process="dead",
        )
        await turn_rows.open_turn(conn, turn)
    return conversation_id


async def seen(server: Server, *, alive: bool) -> None:
    """Set whether the other process has a heartbeat, and pretend that Valkey has run for long enough."""
    heartbeat = server.services.heartbeat
    heartbeat._void_after_s = 0.5
    if alive:
        services = server.services
        await Heartbeat(services.valkey, services.database, "dead", dict, void_after_s=60).beat()


async def test_history_shows_the_turn_of_a_dead_process_as_incomplete(talk: Talk, server: Server) -> None:
    talk.conversation_id = await left_running(talk, server)
    await seen(server, alive=False)
    data = await talk.history()
    assert data["conversation"]["status"] == "normal"
    assert data["conversation_records"][0]["status"] == "incomplete"


async def test_the_next_turn_can_follow_the_turn_of_a_dead_process(talk: Talk, strategy, server: Server) -> None:
    await strategy("one", "say:Here again")
    talk.conversation_id = await left_running(talk, server)
    await seen(server, alive=False)
    events = await talk.turn("Are you there?", "one")
    assert events[-1].name == "end", events[-1]
    assert events[-1].content["record_id"] == 2
    records = (await talk.history())["conversation_records"]
    assert [record["status"] for record in records] == ["complete", "incomplete"]


async def test_turns_of_live_processes_are_not_ended(talk: Talk, strategy, server: Server) -> None:
    await strategy("one", "say:Here again")
    talk.conversation_id = await left_running(talk, server)
    await seen(server, alive=True)
    assert (await talk.history())["conversation"]["status"] == "running"
    async with talk.say("Are you there?", "one") as refused:
        assert refused.status == 409
