"""A URL that names several hosts leads to the first that can be used."""

from urllib.parse import parse_qs, quote, urlsplit

import pytest

from storage.postgres.database import open_database
from tests.storage.wrong_servers import wrong_servers


def url_of(database_url: str, *before: str) -> str:
    """Return a URL in which the host of a database of the tests comes after others."""
    parts = urlsplit(database_url)
    [socket] = parse_qs(parts.query)["host"]
    hosts = ",".join([*before, quote(socket, safe="")])
    return f"postgresql://parley@{hosts}{parts.path}?target_session_attrs=read-write"


async def test_a_host_that_does_not_answer_is_passed_over_and_tried_last_from_then_on(
    database_url: str, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.postgres.hosts._HOST_S", 0.5)
    async with wrong_servers() as ports:
        url = url_of(database_url, f"127.0.0.1:{unused_tcp_port}", f"127.0.0.1:{ports['silent']}")
        async with open_database(url, max_size=2, acquire_timeout_s=5) as database:
            monkeypatch.setattr("storage.postgres.hosts._HOST_S", 60)
            async with database.transaction() as first, database.transaction() as second:
                for conn in (first, second):
                    assert await conn.fetchval("select 1") == 1
