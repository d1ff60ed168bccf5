"""Lets the recognizer of this machine take longer than by default, for tests of commands that run once."""

from aiohttp import ClientSession

_VALUE = {
    "account": "local-audio",
    "model": "whisper",
    "waits": {"first_output_s": 110},
    "languages": ["en"],
}
"""That of `deploy/seed/engines`, where the model has 30 s to be loaded and to recognize: too little on a very busy
machine."""


async def wait_longer(url: str, *, app_id: str, operator_token: str) -> None:
    async with (
        ClientSession(headers={"Authorization": f"Bearer {operator_token}"}) as http,
        http.put(f"{url}/admin/api/configs/{app_id}/recognition/local", json={"value": _VALUE}) as answer,
    ):
        assert answer.status == 200, await answer.text()
