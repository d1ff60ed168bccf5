"""Small applications as processes that tests can kill: `python -m tests.deploy.processes.small_process shop`."""

import asyncio
import socket
import sys
from typing import Any

from app.services import Services, open_services
from app.settings import Settings
from app.work.jobs import JobRow
from app.work.webhooks import worker_of
from app.work.worker import run_until_signal
from storage.jobs.inbox import Webhook
from storage.jobs.jobs import WorkWebhook
from tests.app.platform import source
from tests.app.shop import Shop
from tests.running.servers import running_server


async def never(*_: Any) -> None:
    await asyncio.Event().wait()


async def serve_shop(settings: Settings) -> None:
    """Serve a shop whose orders never complete."""
    shop = Shop()
    shop.inside = never
    with socket.create_server(("127.0.0.1", settings.port)) as listener:
        async with open_services(settings) as services, running_server(services, listener, shop.rows):
            print("ready", flush=True)  # noqa: T201 - the test waits for it
            await never()


async def never_end(_: Services, webhook: Webhook) -> None:
    print("begun", webhook.state.event_id, flush=True)  # noqa: T201 - the test waits for it
    await never()


def main() -> None:
    settings = Settings.from_env()
    if sys.argv[1] == "shop":
        asyncio.run(serve_shop(settings))
    else:
        asyncio.run(run_until_signal(settings, jobs=[JobRow(WorkWebhook, worker_of([source(never_end)]))]))


if __name__ == "__main__":
    main()
