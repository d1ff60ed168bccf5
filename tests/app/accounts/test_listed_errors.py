"""Each account endpoint answers with each error that the interface lists for it, to clients and to servers."""

import pytest

from app.accounts.routes import ACCOUNT_ROUTES
from app.http.errors import status_of
from app.http.row_errors import errors_of
from tests.app.accounts.endpoint_caller import Caller
from tests.app.accounts.error_causes import AUTH, CAUSES, EMAIL
from tests.app.accounts.interface_errors import IMPOSSIBLE, LISTED, Listing
from tests.app.accounts.mailbox import Mailbox, open_mailbox

pytestmark = pytest.mark.xdist_group("listed_errors")  # One worker opens the mailbox.


@pytest.fixture(scope="module")
async def testbed(databases, tmp_path_factory):
    async with open_mailbox(databases, tmp_path_factory.mktemp("data")) as box:
        yield box


async def restore(box: Mailbox) -> None:
    """Undo what causes have changed."""
    await box.configure("auth", **AUTH)
    await box.configure("email", **EMAIL)
    await box.configure("limits")
    await box.server.services.clock.move("default", offset_s=0)
    async with box.server.services.database.connection() as conn:
        await conn.execute("drop function if exists full_disk() cascade")


@pytest.mark.parametrize("server", [False, True], ids=["client", "server"])
@pytest.mark.parametrize("listing", LISTED, ids=lambda listing: listing.name)
async def test_each_listed_error_is_answered(testbed: Mailbox, listing: Listing, server: bool):
    wrong = []
    for error in sorted(listing.errors) if (listing.server_path if server else listing.path) else ():
        if (listing.name, error) in IMPOSSIBLE:
            continue
        await restore(testbed)
        caller = Caller(testbed, listing, server)
        await caller.be_new_user()
        status, reply = await CAUSES[listing.name, error](caller)
        found = f"{status} {reply['error']['error_type'] if reply and 'error' in reply else reply}"
        if found != error:
            wrong.append((error, found, reply))
    assert wrong == []


def test_the_table_covers_exactly_what_the_interface_lists():
    listed = {(each.name, error) for each in LISTED for error in each.errors}
    assert CAUSES.keys() | IMPOSSIBLE.keys() == listed
    assert not CAUSES.keys() & IMPOSSIBLE.keys()


def test_the_route_table_lists_the_same_errors():
    rows = {(row.method, path): row for row in ACCOUNT_ROUTES for path in row.paths}
    for each in LISTED:
        for path in filter(None, (each.path, each.server_path)):
            row = rows[each.method, path]
            documented = {f"{status_of(of, row.area.statuses)} {of.error_type}" for of in errors_of(row, path)}
            impossible = {error for name, error in IMPOSSIBLE if name == each.name and not IMPOSSIBLE[name, error]}
            # A wrong method is refused before there is a row.
            assert each.errors - documented - {"405 method_not_allowed"} == impossible, (each.method, path)
