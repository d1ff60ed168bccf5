"""The emails that the server of a test has sent."""

import re

from tests.app.callers import ask, work_off
from tests.running.servers import Server
from tests.waiting import until


async def mails(server: Server, address: str) -> list[dict]:
    """Return the emails to an address once one has arrived."""
    found: list[dict] = []

    async def arrived() -> bool:
        headers = {"Accept": "application/json"}
        _, found[:] = await ask(server, "GET", "/dev/mail", params={"to": address}, headers=headers)
        return bool(found)

    await work_off(server.services)
    await until(arrived)
    return found


async def code_sent(server: Server, address: str) -> str:
    """Return the code in the only email to an address."""
    (mail,) = await mails(server, address)
    found = re.search(r"\b[0-9]{6}\b", mail["text"])
    assert found, mail["text"]
    return found[0]
