"""The calls of `bench.console`: generated rows, and each list of the admin API with each of its parameters."""

from typing import Any

import asyncpg
import pytest
from aiohttp import ClientSession

from app.admin.area import FOR_VIEWERS
from app.http.paging import IdCursor, Page, PageQuery, SortedQuery
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Query
from bench.console.__main__ import MARKS
from bench.console.configs import write_configs
from bench.console.filling import fill
from bench.console.measuring import Measured, measure_all
from bench.console.operations import FIRST, Operation, cases_of, listing_rows, operations
from bench.console.rows import PARTS, Size
from bench.console.values import Value, Values
from deploy.running import Failed
from tests.code.source_files import ROOT
from tests.running.servers import ADMIN_TOKEN, Server

_SIZE = Size(users=300, records=80, configs=60)
_EMPTY = Values("", {}, {("", "size"): [Value("100", "100")]})


class PostcardQuery(PageQuery[IdCursor]):
    stamp: str | None = None


class PostcardList(Page[str]):
    postcards: list[str]


async def list_postcards(call: Call, query: Query[PostcardQuery]) -> PostcardList:
    """List postcards."""
    return PostcardList(postcards=[])


@pytest.fixture(scope="module")
async def values(module_server: Server) -> Values:
    await write_configs(module_server.services.configs, count=_SIZE.configs)
    conn = await asyncpg.connect(module_server.services.settings.database_url)
    try:
        found = await fill(conn, _SIZE)
        empty = [part.table for part in PARTS if not await conn.fetchval(f"select count(*) from {part.table}")]
        broken = await conn.fetch("select indexrelid::regclass from pg_index where not (indisready and indisvalid)")
    finally:
        await conn.close()
    assert (empty, broken) == ([], [])
    return found


async def test_each_list_is_called_with_each_of_its_parameters(module_server: Server, values: Values):
    found = operations(values)
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    async with ClientSession(module_server.url, headers=headers) as http:
        measured = await measure_all(http, values, of=found, calls=1)
    assert [(each.operation, each.case, each.statuses) for each in measured if each.failed] == []
    assert {each.operation for each in measured} == {each.path for each in found}
    assert {"/admin/api/configs", "/admin/api/users", "/admin/api/users/{app}/{user_id}/history"} <= {
        each.path for each in found
    }
    called = {each.case for each in measured if each.operation == "/admin/api/mails"}
    assert {"first page", "middle", "app=rare", "status=refused", "app=default strategy=seldom"} <= called
    assert len(measured) == sum(len(each.cases) for each in found) - len(_with_one_page(measured, found))


def _with_one_page(measured: list[Measured], found: list[Operation]) -> set[tuple[str, str]]:
    """Return the middle pages that were not called, because the first page is the last one."""
    expected = {(each.path, case.name) for each in found for case in each.cases}
    missing = expected - {(each.operation, each.case) for each in measured}
    assert all(name.startswith("middle") for _, name in missing)
    return missing


async def test_each_list_that_sorts_has_the_same_rows_from_both_ends(module_server: Server, values: Values):
    paths = {
        row.path: next(case.path for case in cases_of(row, values) if case.name == FIRST)
        for row in listing_rows()
        if row.inputs.query is not None and issubclass(row.inputs.query.model, SortedQuery)
    }
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    found = {}
    async with ClientSession(module_server.url, headers=headers) as http:
        for path, address in paths.items():
            newest, oldest = [await _all_rows(http, address, sort) for sort in ("-created", "created")]
            assert newest == oldest[::-1], path
            found[path] = len(newest)
    assert {path for path, count in found.items() if count < 2} == set()
    assert {"/admin/api/audit", "/admin/api/payments/refunds", "/admin/api/users"} <= found.keys()


async def _all_rows(http: ClientSession, path: str, sort: str) -> list[dict[str, Any]]:
    """Return the rows of all pages of a list."""
    rows: list[dict[str, Any]] = []
    query = {"sort": sort, "size": "30"}
    while True:
        async with http.get(path, params=query) as response:
            page = await response.json()
        (listed,) = [value for value in page.values() if isinstance(value, list)]
        rows += listed
        if "next" not in page:
            return rows
        query["before"] = str(page["next"])


def test_the_published_figures_are_those_of_all_lists():
    page = (ROOT / "docs" / "operating" / "tables.md").read_text()
    table = page.partition(MARKS[0])[2].partition(MARKS[1])[0]
    published = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `/admin/")}
    assert published == {row.path for row in listing_rows()}


def test_a_parameter_without_values_is_an_error():
    row = Endpoint("GET", "/admin/api/postcards", list_postcards, FOR_VIEWERS)
    with pytest.raises(Failed, match="/admin/api/postcards: there are no values for stamp"):
        list(cases_of(row, _EMPTY))


@pytest.mark.parametrize(
    ("server_s", "statuses", "met"),
    [
        ([0.02] * 29 + [0.5], {200}, True),
        ([0.02] * 27 + [0.201] * 3, {200}, False),
        ([0.02] * 30, {200, 500}, False),
        ([0.02] * 30, {200, 404}, False),
    ],
)
def test_a_case_is_met_if_95_of_100_calls_are_fast_and_none_fails(
    server_s: list[float], statuses: set[int], met: bool
):
    assert Measured("/list", "first page", statuses=statuses, server_s=server_s).met is met
