"""Configs of the local engines for tests of commands that run once, on machines that may be very busy."""

from typing import Any

from aiohttp import ClientSession

_CONFIGS: dict[str, Any] = {
    "recognition/local": {
        "account": "local-audio",
        "model": "whisper",
        "waits": {"first_output_s": 100},
        "languages": ["en"],
    },
    "vendor_accounts/scripted": {"platform": "scripted"},
    "conversation/local": {
        "chat": {"account": "scripted", "model": "scripted"},
        "recognition": "local",
        "speech": "local",
    },
}
"""Those of `deploy/seed/engines`, but with more time for the recognizer to load its model, and with a scripted
model, because that of language needs some seconds of CPU time for an answer."""


async def save_time(url: str, *, app_id: str, operator_token: str) -> None:
    """Write the configs at a server."""
    async with ClientSession(headers={"Authorization": f"Bearer {operator_token}"}) as http:
        for key, value in _CONFIGS.items():
            async with http.put(f"{url}/admin/api/configs/{app_id}/{key}", json={"value": value}) as answer:
                assert answer.status == 200, await answer.text()
