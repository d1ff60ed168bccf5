"""Each path of IP locations answers with each error that its row lists, and with those that the interface lists."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from app.geo.routes import GEO_ROUTES
from app.http.errors import InvalidApiVersion, status_of
from app.http.paths import is_server_path
from app.http.row_errors import errors_of
from deploy.ip_ranges import Place, write_bin
from streams.wire.errors import (
    AppNotFound,
    AuthFailed,
    BackendUnavailable,
    ConfigInvalid,
    DatabaseError,
    DatabaseUnavailable,
    InternalError,
    InvalidParameter,
    PermissionDenied,
    RateLimited,
    ServiceError,
    TooLarge,
    Unavailable,
    ValkeyError,
    ValkeyUnavailable,
)
from tests.app.callers import token
from tests.app.operators import Operator
from tests.servers import SERVER_KEY, Server

[ROW] = GEO_ROUTES
ELSEWHERE = {
    InternalError: "only a bug causes it",
    Unavailable: "`tests/app/ai/test_large_responses.py` does not read",
    DatabaseError: "no address needs the database",
    DatabaseUnavailable: "the same",
    ValkeyError: "limits are counted in the process without Valkey",
    ValkeyUnavailable: "the same",
}
LONDON: Place = ("GB", "United Kingdom", "England", "London", 51.5, -0.125, "EC1A")
IN_LONDON = "81.2.69.160"
Answer = tuple[int, Any, dict[str, str]]


@dataclass(frozen=True)
class Case:
    """A path of a server, and the file of its config."""

    server: Server
    file: Path
    path: str

    @property
    def of_server(self) -> bool:
        return is_server_path(self.path)

    async def ask(self, *, data: bytes | None = None, **headers: str) -> Answer:
        """Send a request that succeeds, unless something is changed."""
        given = {"X-Forwarded-For": IN_LONDON} | (token(scope="geo") if self.of_server else {})
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        url = self.server.url + self.path.format(user_id="anybody")
        async with self.server.http.get(url, data=data, headers=given) as response:
            return response.status, await response.json(), dict(response.headers)

    @asynccontextmanager
    async def changed(self, kind: str, **fields: Any) -> AsyncIterator[None]:
        """Change fields of a config during the block."""
        operator, path = Operator(self.server), f"configs/default/{kind}/default"
        usual = (await operator("GET", path)).body["value"]
        if kind == "auth":  # Secrets are not shown.
            usual["server_keys"] = [{"kid": "development", "alg": "HS256", "secret": SERVER_KEY}]
        stored = await operator.put(path, usual | fields)
        assert stored.status == 200, stored.body
        try:
            yield
        finally:
            await operator.put(path, usual)


Cause = Callable[[Case], Awaitable[Answer]]


async def of_no_file(case: Case) -> Answer:
    async with case.changed("iplocation", database=str(case.file.with_name("none.bin"))):
        return await case.ask()


async def of_a_damaged_file(case: Case) -> Answer:
    """Damage the rows of a file between the addresses that are looked up when it is loaded."""
    damaged = case.file.with_name("damaged.bin")
    content = bytearray(case.file.read_bytes())
    row = content.index(int(IPv4Address("81.2.0.0")).to_bytes(4, "little"))
    content[row + 4 : row + 8] = b"\xff" * 4
    damaged.write_bytes(content)
    async with case.changed("iplocation", database=str(damaged)):
        return await case.ask()


async def with_a_wrong_proof(case: Case) -> Answer:
    if case.of_server:
        return await case.ask(X_Service_Auth_Token="wrong")
    async with case.changed("auth", require_sign=True, sign_keys=[{"id": "one", "key": "a key of the app"}]):
        return await case.ask(X_Service_Sign="wrong")


async def too_often(case: Case) -> Answer:
    rate = {"count": 1, "per_s": 3600}
    async with case.changed("limits", rates={"iplocation": rate, "server": rate}):
        for _ in range(3):
            found = await case.ask()
        return found


CAUSES: dict[type[ServiceError], Cause] = {
    InvalidApiVersion: lambda case: case.ask(X_Service_Api_Version="2"),
    AppNotFound: lambda case: case.ask(X_Service_App_Id="none"),
    ConfigInvalid: of_no_file,
    AuthFailed: with_a_wrong_proof,
    PermissionDenied: lambda case: case.ask(**token(scope="assets")),
    InvalidParameter: lambda case: case.ask(X_Forwarded_For="nowhere"),
    TooLarge: lambda case: case.ask(data=b" " * 200_000),
    RateLimited: too_often,
    BackendUnavailable: of_a_damaged_file,
}


@pytest.fixture
async def case(shared_server: Server, tmp_path: Path) -> Case:
    file = tmp_path / "ranges.bin"
    write_bin(file, {"81.2.0.0/16": LONDON})
    stored = await Operator(shared_server).put("configs/default/iplocation/default", {"database": str(file)})
    assert stored.status == 200
    return Case(shared_server, file, "")


@pytest.mark.parametrize("path", ROW.paths)
async def test_each_listed_error_is_answered(case: Case, path: str) -> None:
    case, wrong = Case(case.server, case.file, path), []
    for error in dict.fromkeys(errors_of(ROW, path)):
        if error in ELSEWHERE:
            continue
        status, answer, headers = await CAUSES[error](case)
        found = (status, answer.get("error", {}).get("error_type"))
        if found != (status_of(error, ROW.area.statuses), error.error_type):
            wrong.append((error.__name__, found, answer))
        if error is RateLimited:
            assert 0 < int(headers["Retry-After"]) <= 3600
    assert wrong == []
    assert (await case.ask())[1]["city"] == "London"


async def test_errors_of_the_interface_are_listed() -> None:
    for path in ROW.paths:
        assert {"invalid_parameter", "backend unavailable"} <= {error.error_type for error in errors_of(ROW, path)}
