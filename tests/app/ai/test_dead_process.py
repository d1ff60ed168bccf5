"""What a process held when it died is free for others, and its turns are over."""

from typing import Any

from storage import turn_rows
from storage.admission import Admissions, Slot
from storage.heartbeats import Heartbeat
from storage.turn_rows import NewTurn
from streams.wire.ids import new_id
from tests.app.ai.conftest import Talk
from tests.servers import Server


async def left_running(talk: Talk, server: Server) -> str:
    """A conversation whose one turn was running in a process when that was killed."""
    services, conversation_id = server.services, new_id()
    gone = Heartbeat(services.valkey, services.database, "gone", dict)
    slot = Slot("default", talk.uid, new_id(), conversation_id)
    assert await Admissions(services.valkey, gone).take(slot, limit=4, lifetime_s=600) is None
    message: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "Hello?", "source": {}}]}
    async with services.database.connection() as conn:
        turn = NewTurn(
            app_id="default",
            conversation_id=conversation_id,
            uid=talk.uid,
            content=[message],
            stream_id=slot.stream_id,
            longest_s=600,
            process="gone",
        )
        await turn_rows.open_turn(conn, turn)
    return conversation_id


async def seen(server: Server, *, alive: bool) -> None:
    """Let the dead process be heard of now, or never; and Valkey have run for long enough."""
    heartbeat = server.services.heartbeat
    heartbeat._void_after_s = 0.5
    if alive:
        services = server.services
        await Heartbeat(services.valkey, services.database, "gone", dict, void_after_s=60).beat()


async def test_turn_that_a_dead_process_left_is_over_for_who_reads_it(talk: Talk, server: Server) -> None:
    talk.conversation_id = await left_running(talk, server)
    await seen(server, alive=False)
    data = await talk.history()
    assert data["conversation"]["status"] == "normal"
    assert data["conversation_records"][0]["status"] == "incomplete"


async def test_next_turn_goes_on_where_a_dead_process_left(talk: Talk, strategy, server: Server) -> None:
    await strategy("one", "say:Here again")
    talk.conversation_id = await left_running(talk, server)
    await seen(server, alive=False)
    events = await talk.turn("Are you there?", "one")
    assert events[-1].name == "end", events[-1]
    assert events[-1].content["record_id"] == 2
    records = (await talk.history())["conversation_records"]
    assert [record["status"] for record in records] == ["complete", "incomplete"]


async def test_turn_of_a_living_process_is_left_alone(talk: Talk, strategy, server: Server) -> None:
    await strategy("one", "say:Here again")
    talk.conversation_id = await left_running(talk, server)
    await seen(server, alive=True)
    assert (await talk.history())["conversation"]["status"] == "running"
    async with talk.say("Are you there?", "one") as refused:
        assert refused.status == 409
