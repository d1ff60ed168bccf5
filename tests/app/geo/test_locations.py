"""The location of an IP address over HTTP: which address is looked up, and in which version of the file."""

from pathlib import Path
from typing import Any

import pytest
from mmdb_writer import MMDBWriter
from netaddr import IPSet
from structlog.testing import capture_logs

from deploy.ip_ranges import Place, write_bin
from storage.operators.audit import COMMAND
from tests.app.callers import ask, token
from tests.app.operators import Operator
from tests.running.servers import Server
from tests.waiting import until

PATH, SERVER_PATH = "/bp/iplocation/ipv4", "/bp/server/user/anybody/iplocation/ipv4"
LONDON: Place = ("GB", "United Kingdom", "England", "London", 51.5, -0.125, "EC1A")
TOKYO: Place = ("JP", "Japan", "Tokyo", "Tokyo", 35.5, 139.75, "-")
RANGES = {"81.2.0.0/16": LONDON, "133.0.0.0/8": TOKYO, "2a00:1450::/32": LONDON}
IN_LONDON, IN_TOKYO, NOWHERE = "81.2.69.160", "133.11.0.1", "203.0.112.1"


def reply(ip: str, place: Place | None) -> dict[str, str]:
    names = ("country_code", "country_name", "region", "city", "latitude", "longitude", "zip_code")
    values = (
        ["-"] * 7 if place is None else [f"{value:.6f}" if isinstance(value, float) else value for value in place]
    )
    return {"ip": ip, **dict(zip(names, values, strict=True))}


class Locator:
    """A server, and the file of its config."""

    def __init__(self, server: Server, path: Path) -> None:
        self.server = server
        self.path = path

    async def configure(self, **value: Any) -> None:
        put = self.server.services.configs.put
        await put("default", "iplocation", "default", value, author="test", origin=COMMAND)

    async def __call__(self, *headers: str, path: str = PATH, **options: Any) -> tuple[int, Any]:
        sent = [*(("X-Forwarded-For", value) for value in headers), *options.pop("headers", {}).items()]
        return await ask(self.server, "GET", path, headers=sent, **options)

    async def city(self, ip: str = IN_LONDON) -> str:
        status, found = await self(ip)
        assert status == 200, found
        return str(found["city"])


@pytest.fixture
async def locate(shared_server: Server, tmp_path: Path) -> Locator:
    path = tmp_path / "ranges.bin"
    write_bin(path, RANGES)
    locator = Locator(shared_server, path)
    await locator.configure(database=str(path))
    return locator


@pytest.mark.parametrize(
    ("headers", "ip"),
    [
        ([IN_LONDON], IN_LONDON),
        ([f"{IN_LONDON}, {IN_TOKYO}"], IN_LONDON),
        ([IN_LONDON, IN_TOKYO], IN_LONDON),
        ([f"unknown, , 256.1.1.1, {IN_LONDON}:8443, {IN_TOKYO}"], IN_LONDON),
        (["[2a00:1450::5]:443"], "2a00:1450::5"),
        (["2a00:1450:0::5%eth0"], "2a00:1450::5"),
        ([f"::ffff:{IN_LONDON}"], IN_LONDON),
        (["2002:5102:45a0::1"], "2002:5102:45a0::1"),  # 6to4
        (["2001:0:4136:e378:8000:63bf:aefd:ba5f"], "2001:0:4136:e378:8000:63bf:aefd:ba5f"),  # Teredo
    ],
)
async def test_first_valid_address_of_the_header_is_located(locate: Locator, headers: list[str], ip: str) -> None:
    assert await locate(*headers) == (200, reply(ip, LONDON))


async def test_addresses_without_data_and_special_ones_have_no_place(locate: Locator) -> None:
    assert await locate(NOWHERE) == (200, reply(NOWHERE, None))
    await locate.configure()  # No database is needed for the special ones.
    for ip in ("10.1.2.3", "192.168.0.1", "127.0.0.1", "169.254.1.1", "100.64.0.1", "224.0.0.1", "240.0.0.1",
               "192.0.2.1", "255.255.255.255", "0.1.2.3", "::1", "fe80::1", "fc00::1", "2001:db8::1", "ff02::1",
               "2002:a00:1::1"):  # fmt: skip
        assert await locate(ip) == (200, reply(ip, None)), ip
    status, problem = await locate(IN_LONDON)
    assert (status, problem["error"]["error_type"]) == (422, "config_invalid")
    assert problem["error"]["message"] == "config_invalid: iplocation default: database is not set"


async def test_without_a_header_the_caller_is_located(locate: Locator) -> None:
    status, found = await locate()
    assert (status, found["country_code"]) == (200, "-")
    assert found["ip"].startswith("127.")


@pytest.mark.parametrize("header", ["unknown", "1.2.3", ",", "999.1.1.1, for=1.2.3.4", "[::1", "1.2.3.4:x"])
async def test_header_without_an_address_is_refused(locate: Locator, header: str) -> None:
    for trusted in ((), ("127.0.0.0/8",)):
        await locate.configure(database=str(locate.path), trusted_proxies=list(trusted))
        status, problem = await locate(header)
        assert (status, problem["error"]["error_type"]) == (400, "invalid_parameter")
        assert "X-Forwarded-For" in problem["error"]["message"]


async def test_with_trusted_proxies_the_last_address_before_them_is_located(locate: Locator) -> None:
    trusted = ["127.0.0.0/8", "10.0.0.0/8"]
    await locate.configure(database=str(locate.path), trusted_proxies=trusted)
    for header in (f"{IN_TOKYO}, {IN_LONDON}", f"{IN_TOKYO}, {IN_LONDON}, 10.1.1.1, garbage, 10.2.2.2"):
        assert await locate(header) == (200, reply(IN_LONDON, LONDON))
    assert await locate("10.1.1.1, 10.2.2.2") == (200, reply("10.1.1.1", None))
    await locate.configure(database=str(locate.path), trusted_proxies=["10.0.0.0/8"])
    status, found = await locate(IN_LONDON)  # The peer is not a trusted proxy.
    assert (status, found["ip"][:4]) == (200, "127.")


async def test_servers_ask_for_anybody_with_their_scope(locate: Locator) -> None:
    for user in ("anybody", "-", "1", "x" * 500, "%20"):
        path = SERVER_PATH.replace("anybody", user)
        assert await locate(IN_TOKYO, path=path, headers=token(scope="geo")) == (200, reply(IN_TOKYO, TOKYO))
    status, problem = await locate(IN_TOKYO, path=SERVER_PATH, headers=token(scope="mail"))
    assert (status, problem["error"]["error_type"]) == (403, "permission_denied")
    status, problem = await locate(IN_TOKYO, path=SERVER_PATH)
    assert (status, problem["error"]["error_type"]) == (401, "auth_failed")


async def test_clients_are_limited_by_address_and_servers_are_not(locate: Locator) -> None:
    put = locate.server.services.configs.put
    limits = {"rates": {"iplocation": {"count": 2, "per_s": 3600}}}
    await put("default", "limits", "default", limits, author="test", origin=COMMAND)
    assert [(await locate(IN_LONDON))[0] for _ in range(3)] == [200, 200, 429]
    headers = token(scope="geo")
    assert [(await locate(IN_LONDON, path=SERVER_PATH, headers=headers))[0] for _ in range(3)] == [200] * 3


async def test_changed_file_is_used_and_a_damaged_one_is_not(locate: Locator) -> None:
    async def is_in(city: str) -> bool:
        return await locate.city() == city

    assert await is_in("London")
    write_bin(locate.path, {"81.2.0.0/16": TOKYO})  # It replaces the file.
    await until(lambda: is_in("Tokyo"), every_s=0.2)
    other = locate.path.with_name("other.bin")
    write_bin(other, RANGES)
    locate.path.write_bytes(other.read_bytes())  # The same file has a new content.
    await until(lambda: is_in("London"), every_s=0.2)

    def not_loaded(logged: list[Any]) -> list[Any]:
        return [line for line in logged if line["event"] == "geo.file_not_loaded"]

    with capture_logs() as logged:
        for damage in (b"", b"no database", other.read_bytes()[:-300], other.read_bytes()[:100]):
            seen = len(not_loaded(logged))
            locate.path.write_bytes(damage)
            await until(lambda seen=seen: len(not_loaded(logged)) > seen, every_s=0.2)
            assert await locate.city() == "London"
        locate.path.unlink()
        await until(lambda: not_loaded(logged)[-1]["reason"] == "no such file or directory", every_s=0.2)
        assert await locate.city() == "London"
    assert {line["path"] for line in not_loaded(logged)} == {str(locate.path)}


async def test_file_that_was_never_loaded_is_named_and_used_once_it_is_there(
    locate: Locator, tmp_path: Path
) -> None:
    late = tmp_path / "late.bin"
    await locate.configure(database=str(late))
    for content, problem in (
        (None, "no such file or directory"),
        (b"x" * 99, "it is neither an mmdb nor a BIN file"),
    ):
        if content is not None:
            late.write_bytes(content)

        async def is_named(problem: str = problem) -> bool:
            status, found = await locate(IN_LONDON)
            assert (status, found["error"]["error_type"]) == (422, "config_invalid")
            expected = f"config_invalid: iplocation default: database cannot be used: {problem}"
            return bool(found["error"]["message"] == expected)

        await until(is_named, every_s=0.2)
    write_bin(late, RANGES)

    async def is_located() -> bool:
        return (await locate(IN_LONDON))[0] == 200

    await until(is_located, every_s=0.2)


def names(text: str) -> dict[str, Any]:
    return {"names": {"de": "?", "en": text}}


def write_mmdb(path: Path, *, ipv6: bool) -> None:
    writer = MMDBWriter(6 if ipv6 else 4, "GeoIP2-City", ipv4_compatible=ipv6)
    london = {
        "country": {"iso_code": "GB", **names("United Kingdom")},
        "subdivisions": [names("England"), names("Westminster")],
        "city": names("London"),
        "location": {"latitude": 51.5, "longitude": -0.125},
        "postal": {"code": "EC1A"},
    }
    writer.insert_network(IPSet(["81.2.0.0/16"]), london)
    writer.insert_network(IPSet(["133.0.0.0/8"]), {"registered_country": {"iso_code": "JP", **names("Japan")}})
    writer.to_db_file(str(path))


@pytest.mark.parametrize("ipv6", [False, True])
async def test_mmdb_files_answer_the_same_fields(locate: Locator, tmp_path: Path, *, ipv6: bool) -> None:
    path = tmp_path / "city.mmdb"
    write_mmdb(path, ipv6=ipv6)
    await locate.configure(database=str(path))
    assert await locate(IN_LONDON) == (200, reply(IN_LONDON, LONDON))
    japan = reply(IN_TOKYO, None) | {"country_code": "JP", "country_name": "Japan"}
    assert await locate(IN_TOKYO) == (200, japan)
    assert await locate(NOWHERE) == (200, reply(NOWHERE, None))
    status, found = await locate("2a00:1450::5")
    if ipv6:
        assert (status, found) == (200, reply("2a00:1450::5", None))
    else:
        assert (status, found["error"]["error_type"]) == (400, "invalid_parameter")


async def test_config_that_names_no_file_or_no_network_is_answered_with_what_is_wrong(locate: Locator) -> None:
    operator = Operator(locate.server)
    path = "configs/default/iplocation/default"
    stored = await operator.put(path, {"database": "/nowhere/ranges.bin"})
    assert stored.body["warnings"] == [{"path": "database", "message": "names no file on this server"}]
    assert "warnings" not in (await operator.put(path, {"database": str(locate.path)})).body
    refused = await operator.put(path, {"trusted_proxies": ["10.0.0.0/33"]})
    assert refused.status == 400
    assert "trusted_proxies[0] must be an IP address or a network" in refused.error[1]
