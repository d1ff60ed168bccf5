"""The client calls all operations of the interface that are for apps and app servers."""

from tests.clients.operations import expected, recording_server
from tests.clients.typescript.conftest import PROMPT
from tests.clients.typescript.program import Program

KEY = {"kid": "one", "alg": "HS256", "key": "a secret that signs nothing that matters"}
SESSION = {"uid": "one", "token": "a session", "bpAuth": None}


async def test_the_client_calls_all_operations(program: Program) -> None:
    async with recording_server() as recorder:
        await program.do("client", name="user", url=recorder.url, options={"backoff": PROMPT, "session": SESSION})
        await program.do("everything")
        await program.do("appServer", name="server", url=recorder.url, key=KEY, user="one")
        await program.do("everything")
        await program.do("everything", client="server")
        called, wanted = recorder.operations(), expected()
    assert sorted(called - wanted) == []
    assert sorted(wanted - called) == []
