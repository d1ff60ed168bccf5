"""The reported causes if the database cannot be used, and where it is."""

from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from structlog.testing import capture_logs

from storage.postgres.database import map_errors, open_database
from streams.wire.errors import DatabaseError, DatabaseUnavailable
from tests.running.servers import Stores
from tests.storage.wrong_servers import UNKNOWN_HOST, refusing_passwords, wrong_servers

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


async def test_a_refused_password_that_was_decoded_is_explained() -> None:
    async with refusing_passwords() as port:
        for password, hint in (("p%41ss", True), ("pass", False)):
            with pytest.raises(DatabaseUnavailable) as raised:
                async with open_database(f"postgresql://ada:{password}@127.0.0.1:{port}/parley"):
                    pass
            said, _, advice = raised.value.what.partition("; ")
            assert said.startswith("the database refuses this server's password (DATABASE_URL: 127.0.0.1:")
            assert advice.startswith("the password in the URL has % or +, which is decoded") is hint
            assert "p%41ss" not in raised.value.what
            assert "pAss" not in raised.value.what


OPTIONS = {
    "foo=bar": 'unrecognized configuration parameter "foo"',
    "connect_timeout=5": 'unrecognized configuration parameter "connect_timeout"',
    "server_settings=x": 'unrecognized configuration parameter "server_settings"',
    "statement_timeout=abc": 'invalid value for parameter "statement_timeout": "abc"',
    "max_connections=5": 'parameter "max_connections" cannot be changed without restarting the server',
    "sslmode=off": "`sslmode` parameter must be one of: disable, allow, prefer, require, verify-ca, verify-full",
    "port=x": "invalid literal for int() with base 10: 'x'",
    "target_session_attrs=foo": (
        "target_session_attrs must be one of any, primary, standby, prefer-standby, read-write, read-only"
    ),
}
"""An option of the URL, and what is wrong with it."""


@pytest.mark.parametrize("option", OPTIONS)
async def test_a_wrong_option_of_the_url_is_named(stores: Stores, option: str) -> None:
    with pytest.raises(DatabaseError) as raised:
        async with open_database(f"{stores.database_url}&{option}"):
            pass
    assert raised.value.what == f"DATABASE_URL cannot be used: {OPTIONS[option]}"


async def test_a_required_role_that_no_host_has_is_named(stores: Stores) -> None:
    with pytest.raises(DatabaseUnavailable) as raised:
        async with open_database(f"{stores.database_url}&target_session_attrs=standby"):
            pass
    cause = "no host of the database has the role that `target_session_attrs` requires"
    assert raised.value.what.startswith(f"{cause} (DATABASE_URL: ")


async def test_a_statement_on_a_lost_connection_is_an_outage(database_url: str) -> None:
    async with open_database(database_url, max_size=1) as database, database.connection() as conn:
        conn.terminate()
        with pytest.raises(DatabaseUnavailable, match="the connection was lost"), map_errors():
            await conn.fetchval("select 1")


async def test_a_wrong_number_of_arguments_is_no_outage(database_url: str) -> None:
    async with open_database(database_url, max_size=1) as database:
        with capture_logs() as lines, pytest.raises(DatabaseError, match="a statement could not be sent"):
            async with database.connection() as conn:
                await conn.fetchval("select 1", 2)
    assert lines == []


async def test_the_log_line_of_an_outage_has_the_location(database_url: str) -> None:
    async with open_database(database_url, max_size=1) as database:
        with capture_logs() as lines, pytest.raises(DatabaseUnavailable):
            async with database.connection() as conn:
                await conn.execute("select pg_terminate_backend(pg_backend_pid())")
    (line,) = [line for line in lines if line["event"] == "store.unavailable"]
    name = urlsplit(database_url).path.removeprefix("/")
    assert f", database {name}, user " in line["location"]
