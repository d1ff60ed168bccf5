"""Callers behind a proxy are counted by the address that the proxy reports."""

from pathlib import Path

from storage.operators.audit import COMMAND
from tests.running.servers import Databases, Server, new_server


async def new_user(server: Server, forwarded: str, *, device_id: str) -> int:
    body, headers = {"device": {"id": device_id}}, {"X-Forwarded-For": forwarded}
    async with server.http.post(server.url + "/bp/user/login", json=body, headers=headers) as response:
        return response.status


async def test_callers_are_distinguished_by_the_address_that_the_proxy_reports(
    databases: Databases, tmp_path: Path
) -> None:
    rates = {"signup": {"count": 1, "per_s": 3600}}
    async with new_server(databases, tmp_path, trusted_proxies=("127.0.0.0/8",)) as server:
        await server.services.configs.put(
            "default", "limits", "default", {"rates": rates}, author="tests", origin=COMMAND
        )
        for number, (forwarded, status) in enumerate(
            (
                ("198.51.100.1", 200),
                ("198.51.100.1", 429),
                ("198.51.100.2", 200),
                ("203.0.113.9, 198.51.100.2", 429),
                ("2001:db8::1", 200),
                ("2001:db8::ffff:2", 429),
                ("2001:db8:0:1::1", 200),
            )
        ):
            assert await new_user(server, forwarded, device_id=f"device-{number}") == status, forwarded
