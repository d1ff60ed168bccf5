"""Each account endpoint answers with each error that the interface lists for it, to clients and to servers."""

from dataclasses import dataclass
from typing import Any

import pytest

from app.accounts.routes import ACCOUNT_ROUTES
from app.http.errors import status_of
from app.http.rows.row_errors import errors_of
from tests.app.accounts.email.mailbox import Mailbox, open_mailbox
from tests.app.accounts.endpoint_caller import Caller
from tests.app.accounts.error_causes import AUTH, CAUSES, EMAIL
from tests.app.accounts.interface_errors import IMPOSSIBLE, LISTED, Listing
from tests.app.http.rows.listed_errors import Listed, wrong_answers

PATHS = [
    pytest.param(listing, server, id=f"{listing.name}-{'server' if server else 'client'}")
    for listing in LISTED
    for server in (False, True)
    if (listing.server_path if server else listing.path)
]
pytestmark = pytest.mark.xdist_group("listed_errors")  # One worker opens the mailbox.


USUAL: dict[str, dict[str, Any]] = {"auth": AUTH, "email": EMAIL, "limits": {}}
"""The values of the configs that causes change, by kind."""
_REVISIONS = "select kind, revision from newest_configs where app_id = 'default' and name = 'default'"


@dataclass
class Mailroom:
    """A mailbox, and the revisions of its configs when they were usual."""

    box: Mailbox
    revisions: dict[str, int] | None = None

    async def restore(self) -> None:
        """Undo what causes have changed."""
        async with self.box.server.services.database.connection() as conn:
            await conn.execute("drop function if exists full_disk() cascade")
            found = dict(await conn.fetch(_REVISIONS))
        usual = self.revisions or {}
        changed = [kind for kind in USUAL if kind not in usual or found[kind] != usual[kind]]
        for kind in changed:
            await self.box.configure(kind, **USUAL[kind])
        if changed:
            async with self.box.server.services.database.connection() as conn:
                self.revisions = dict(await conn.fetch(_REVISIONS))
        await self.box.server.services.clock.move("default", offset_s=0)


@pytest.fixture(scope="module")
async def testbed(databases, tmp_path_factory):
    async with open_mailbox(databases, tmp_path_factory.mktemp("data")) as box:
        yield Mailroom(box)


def listed_for(listing: Listing) -> list[Listed]:
    errors = [(*error.split(" ", 1), error) for error in sorted(listing.errors)]
    return [
        Listed(error, int(status), error_type, CAUSES.get((listing.name, error)))
        for status, error_type, error in errors
        if (listing.name, error) not in IMPOSSIBLE
    ]


@pytest.mark.parametrize(("listing", "server"), PATHS)
async def test_each_listed_error_is_answered(testbed: Mailroom, listing: Listing, server: bool):
    async def prepared() -> Caller:
        await testbed.restore()
        caller = Caller(testbed.box, listing, server)
        await caller.be_new_user()
        return caller

    assert await wrong_answers(listed_for(listing), prepared) == []


def test_the_table_covers_exactly_what_the_interface_lists():
    listed = {(row.name, error) for row in LISTED for error in row.errors}
    assert CAUSES.keys() | IMPOSSIBLE.keys() == listed
    assert not CAUSES.keys() & IMPOSSIBLE.keys()


def test_the_route_table_lists_the_same_errors():
    rows = {(row.method, path): row for row in ACCOUNT_ROUTES for path in row.paths}
    for listed_row in LISTED:
        for path in filter(None, (listed_row.path, listed_row.server_path)):
            row = rows[listed_row.method, path]
            documented = {f"{status_of(of, row.area.statuses)} {of.error_type}" for of in errors_of(row, path)}
            impossible = {
                error for name, error in IMPOSSIBLE if name == listed_row.name and not IMPOSSIBLE[name, error]
            }
            # A wrong method is refused before there is a row.
            assert listed_row.errors - documented - {"405 method_not_allowed"} == impossible, (
                listed_row.method,
                path,
            )
