"""Each path of IP locations answers with each error that its row lists, and with those that the interface lists."""

from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from app.geo.routes import GEO_ROUTES
from app.http.paths import is_server_path
from app.http.rows.endpoint import Endpoint
from app.http.rows.row_errors import errors_of
from deploy.ip_ranges import Place as Range
from deploy.ip_ranges import write_bin
from streams.wire.errors import (
    BackendUnavailable,
    ConfigInvalid,
    DatabaseError,
    DatabaseUnavailable,
    InvalidParameter,
    RateLimited,
)
from tests.app.callers import token
from tests.app.http.rows.listed_errors import (
    WITHOUT_VALKEY,
    Answer,
    ErrorTable,
    Place,
    changed,
    too_often,
    wrong_answers,
)
from tests.app.operators import Operator
from tests.running.servers import Server

[ROW] = GEO_ROUTES
TABLE = ErrorTable(
    GEO_ROUTES,
    elsewhere={
        DatabaseError: "no address needs the database",
        DatabaseUnavailable: "the same",
        **WITHOUT_VALKEY,
    },
)
LONDON: Range = ("GB", "United Kingdom", "England", "London", 51.5, -0.125, "EC1A")
IN_LONDON = "81.2.69.160"


@dataclass(frozen=True)
class Case:
    """A path of a server, and the file of its config."""

    server: Server
    file: Path
    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    """The headers of the last answer."""

    @property
    def row(self) -> Endpoint:
        return ROW

    async def ask(self, *, uid: str = "anybody", data: bytes | None = None, **headers: str) -> Answer:
        """Send a request that succeeds, unless something is changed."""
        given = {"X-Forwarded-For": IN_LONDON} | (token(scope="geo") if is_server_path(self.path) else {})
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        url = self.server.url + self.path.format(user_id=uid)
        async with self.server.http.get(url, data=data, headers=given) as response:
            self.headers.update(response.headers)
            return response.status, await response.json()


@TABLE.causes(ConfigInvalid)
async def of_no_file(case: Case) -> Answer:
    async with changed(case.server, "iplocation", database=str(case.file.with_name("none.bin"))):
        return await case.ask()


@TABLE.causes(BackendUnavailable)
async def of_a_damaged_file(case: Case) -> Answer:
    """Damage the rows of a file between the addresses that are looked up when it is loaded."""
    damaged = case.file.with_name("damaged.bin")
    content = bytearray(case.file.read_bytes())
    row = content.index(int(IPv4Address("81.2.0.0")).to_bytes(4, "little"))
    content[row + 4 : row + 8] = b"\xff" * 4
    damaged.write_bytes(content)
    async with changed(case.server, "iplocation", database=str(damaged)):
        return await case.ask()


@TABLE.causes(InvalidParameter)
async def of_no_address(case: Case) -> Answer:
    return await case.ask(X_Forwarded_For="nowhere")


@TABLE.causes(RateLimited)
async def too_often_for_an_hour(case: Case) -> Answer:
    answer = await too_often(case, rate="iplocation")
    assert 0 < int(case.headers["Retry-After"]) <= 3600
    return answer


@pytest.fixture
async def case(shared_server: Server, tmp_path: Path) -> Case:
    file = tmp_path / "ranges.bin"
    write_bin(file, {"81.2.0.0/16": LONDON})
    stored = await Operator(shared_server).put("configs/default/iplocation/default", {"database": str(file)})
    assert stored.status == 200
    return Case(shared_server, file)


@pytest.mark.parametrize("place", TABLE.places, ids=" ".join)
async def test_each_listed_error_is_answered(case: Case, place: Place) -> None:
    case = replace(case, path=place[1])

    async def prepared() -> Case:
        return case

    assert await wrong_answers(TABLE.listed_at(place), prepared) == []
    assert (await case.ask())[1]["city"] == "London"


async def test_errors_of_the_interface_are_listed() -> None:
    for path in ROW.paths:
        assert {"invalid_parameter", "backend unavailable"} <= {error.error_type for error in errors_of(ROW, path)}
