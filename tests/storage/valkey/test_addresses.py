"""URLs of clusters and of servers that Sentinel watches."""

import pytest
from redis.asyncio.connection import SSLConnection

from app.environment import SettingsError
from app.settings import Settings
from storage.valkey.addresses import location, parse
from storage.valkey.opening import open_valkey
from streams.wire.errors import ValkeyError

REQUIRED = {
    "DATABASE_URL": "postgresql://db/parley",
    "PARLEY_MASTER_KEY": "6f0c1d27a4e95b83" * 4,
    "PARLEY_ADMIN_TOKEN": "sixteen characters",
    "PARLEY_PUBLIC_URL": "https://parley.example",
}


def test_a_cluster_is_reached_through_any_of_its_nodes() -> None:
    found = parse("redis+cluster://ada:s%40cret@one:7001,two,[::1]:7003?socket_timeout=2")
    assert found.topology == "cluster"
    assert found.hosts == [("one", 7001), ("two", 6379), ("::1", 7003)]
    assert found.options == {"username": "ada", "password": "s@cret", "socket_timeout": 2.0}


def test_sentinels_have_options_of_their_own() -> None:
    url = "rediss+sentinel://ada:secret@one,two:26380/streams?db=3&sentinel_password=watch&ssl_ca_certs=/ca.pem"
    found = parse(url)
    assert (found.topology, found.service) == ("sentinel", "streams")
    assert found.hosts == [("one", 26379), ("two", 26380)]
    assert found.options["connection_class"] is SSLConnection
    assert (found.options["db"], found.options["password"]) == (3, "secret")
    assert found.options["ssl_ca_certs"] == "/ca.pem"
    assert found.sentinel_options == {"password": "watch", "connection_class": SSLConnection}


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("redis+cluster://ada:secret@one:7001,two", "the cluster at one:7001, two, user ada"),
        ("redis+sentinel://:secret@one,two/streams?db=3", "streams of the Sentinels at one, two, database 3"),
    ],
)
def test_the_location_has_no_password(url: str, place: str) -> None:
    assert location(url) == place


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("redis+cluster://one/2", "a cluster has only the database 0"),
        ("redis+cluster://one?db=2", "a cluster has only the database 0"),
        ("redis+sentinel://one", "the name of the group is missing"),
        ("redis+cluster://one?unknown=1", "unknown option unknown"),
        ("redis+sentinel://one/streams?sentinel_unknown=1", "unknown option unknown"),
    ],
)
async def test_a_url_that_cannot_be_used_is_named(url: str, fault: str) -> None:
    with pytest.raises(ValkeyError, match="REDIS_URL cannot be used") as raised:
        async with open_valkey(url):
            pass
    assert fault in str(raised.value)


def test_settings_accept_all_kinds_and_name_others() -> None:
    for url in (
        "redis://one",
        "unix:///v.sock",
        "redis+cluster://one,[::1]:7",
        "rediss+sentinel://one,two/streams",
    ):
        assert Settings.from_env({**REQUIRED, "REDIS_URL": url}).redis_url == url
    with pytest.raises(SettingsError, match="REDIS_URL must be a URL that begins with redis://"):
        Settings.from_env({**REQUIRED, "REDIS_URL": "valkey+cluster://one"})
