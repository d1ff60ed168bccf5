"""The reported causes if the database cannot be used, and where it is."""

from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from structlog.testing import capture_logs

from storage.postgres import open_database
from streams.wire.errors import DatabaseUnavailable
from tests.servers import Stores
from tests.storage.wrong_servers import UNKNOWN_HOST, wrong_servers

NOT_REACHABLE = "the database is not reachable"
FAULTS = {
    "refused": ("127.0.0.1:{refused}", f"{NOT_REACHABLE}: connection refused"),
    "unknown host": (UNKNOWN_HOST, f"{NOT_REACHABLE}: its host name was not resolved"),
    "silent": ("127.0.0.1:{silent}", f"{NOT_REACHABLE}: no answer in time"),
    "not PostgreSQL": (
        "127.0.0.1:{http}",
        f"{NOT_REACHABLE}: the server at its address is not PostgreSQL, or refuses TLS",
    ),
    "closing": (
        "127.0.0.1:{closing}",
        f"{NOT_REACHABLE}: the server at its address closed the connection without a response",
    ),
}
"""The host and the port of the URL, and the cause."""


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_server_that_cannot_be_used_is_named_with_the_cause(fault: str, unused_tcp_port: int) -> None:
    host, cause = FAULTS[fault]
    async with wrong_servers() as ports:
        place = host.format(refused=unused_tcp_port, **ports)
        with pytest.raises(DatabaseUnavailable) as raised:
            async with open_database(f"postgresql://ada:secret@{place}/parley", acquire_timeout_s=0.5):
                pass
    named = place if ":" in place else f"{place}:5432"
    assert raised.value.what == f"{cause} (DATABASE_URL: {named}, database parley, user ada)"


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        ({"user": "ada"}, 'the database refuses this server\'s user: role "ada" does not exist'),
        ({"dbname": "none"}, "the database does not exist"),
    ],
    ids=["unknown role", "missing database"],
)
async def test_what_the_server_does_not_have_is_named(stores: Stores, wrong: dict[str, str], cause: str) -> None:
    options = {"dbname": "postgres", **dict(parse_qsl(urlsplit(stores.database_url).query)), **wrong}
    with pytest.raises(DatabaseUnavailable) as raised:
        async with open_database(f"postgresql://?{urlencode(options)}&password=secret"):
            pass
    location = f"{options['host']}:5432, database {options['dbname']}, user {options['user']}"
    assert raised.value.what == f"{cause} (DATABASE_URL: {location})"


async def test_the_log_line_of_an_outage_has_the_location(database_url: str) -> None:
    async with open_database(database_url, max_size=1) as database:
        with capture_logs() as lines, pytest.raises(DatabaseUnavailable):
            async with database.connection() as conn:
                await conn.execute("select pg_terminate_backend(pg_backend_pid())")
    (line,) = [line for line in lines if line["event"] == "store.unavailable"]
    name = urlsplit(database_url).path.removeprefix("/")
    assert f", database {name}, user " in line["location"]
