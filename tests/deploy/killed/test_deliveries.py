"""A worker that is killed while it delivers events loses none: another one delivers them, with the same ids."""

import base64

from app.services import Services
from app.settings import Settings
from app.work.event_delivery import deliver_events
from storage.events.outbox import AccountEvent
from storage.operators.audit import COMMAND
from streams.tasks import background
from streams.wire.codec import loads
from tests.deploy.commands import command
from tests.deploy.serving import server_env
from tests.vendors.http.upstream import hold, plain, running_upstream
from tests.waiting import until

SECRET = f"whsec_{base64.b64encode(bytes(32)).decode()}"


async def test_events_of_a_killed_worker_are_delivered_by_another(settings: Settings, services: Services) -> None:
    async with running_upstream() as webhook:
        webhook.respond_with(plain(204), hold)
        value = {"url": webhook.url, "secret": SECRET, "events": ["account"], "timeout_s": 30, "concurrency": 3}
        await services.configs.put("default", "events", "crm", value, author="test", origin=COMMAND)
        for number in range(6):
            async with services.database.transaction() as conn:
                event = AccountEvent(user_id=f"u{number}", change="sign_up")
                await services.sinks.report(conn, "default", event, now=services.clock.now("default"))
        async with command("app", "worker", **server_env(settings)) as worker:
            await until(lambda: len(webhook.seen) == 4)  # The first one is delivered, and three are under way.
            worker.process.kill()
            await worker.end()
        begun = [loads(call.body) for call in webhook.seen]

        async def left() -> int:
            async with services.database.connection() as conn:
                count: int = await conn.fetchval("select count(*) from reported_events")
                return count

        assert await left() == 5
        async with services.database.connection() as conn:  # So long does the killed worker count as alive.
            await conn.execute("update reported_events set claim_ends_at = claim_ends_at - interval '60 seconds'")
        webhook.respond_with(plain(204))
        async with background(deliver_events(services, poll_s=0.05)):
            await until(lambda: len(webhook.seen) == 9)

            async def none_left() -> bool:
                return await left() == 0

            await until(none_left)
    sent = [loads(call.body) for call in webhook.seen]
    assert {body["data"]["user_id"] for body in sent} == {f"u{number}" for number in range(6)}
    assert len({body["id"] for body in sent}) == 6
    assert all(body in sent[4:] for body in begun[1:])
    assert begun[0] not in sent[1:]
