"""What browsers get for links that do not work: a page with the status of the error, never JSON."""

from typing import NamedTuple

import pytest

from tests.app.accounts.email.mailbox import Mailbox, link_in, new_address, path_of

VERIFY, RESET, NOT_ME = "/account/verify", "/account/reset", "/account/not-me"
LINK = "/bp/user/email/verify"
BROKEN, LATER = "This link does not work", "This does not work at the moment"


class Page(NamedTuple):
    status: int
    media_type: str
    title: str


async def opened(box: Mailbox, path: str, method: str = "GET", **options) -> Page:
    headers = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    async with box.server.http.request(method, box.server.url + path, headers=headers, **options) as response:
        title = (await response.text()).partition("<h1>")[2].partition("</h1>")[0]
        return Page(response.status, response.content_type, title)


async def verify_link(box: Mailbox) -> str:
    """Sign up with an address, and return the path of the link that verifies it."""
    address = new_address()
    await box.sign_up(address)
    return path_of(link_in(await box.mail(address)))


async def test_links_of_an_app_whose_emails_are_switched_off(box: Mailbox):
    link = await verify_link(box)
    await box.configure(enabled=False)
    pages = [await opened(box, url) for url in (link, link.replace(LINK, VERIFY))]
    assert pages == [(417, "text/html", BROKEN), (422, "text/html", BROKEN)]
    async with box.server.http.get(box.server.url + link) as response:
        assert (response.status, response.content_type) == (417, "application/json")


@pytest.mark.parametrize(
    "path",
    [
        f"{VERIFY}?verify_code={'x' * 257}",
        f"{LINK}?verify_code={'x' * 257}",
        f"{LINK}?verify_code=x",
        f"{VERIFY}",
        f"{RESET}?random_code={'x' * 2049}",
        f"{RESET}?random_code=x",
        f"{NOT_ME}?token={'x' * 2049}",
        f"{NOT_ME}?token=x",
    ],
)
async def test_links_that_were_cut_or_changed(box: Mailbox, path: str):
    assert await opened(box, path) == (400, "text/html", BROKEN)
    for accept in ("text/html", "application/json"):
        async with box.server.http.get(box.server.url + path, headers={"Accept": accept}) as response:
            assert (response.content_type, response.headers["Vary"]) == (accept, "Accept")


async def test_a_link_with_an_invalid_address(box: Mailbox):
    link = await verify_link(box)
    assert await opened(box, f"{link}&email=nope") == (400, "text/html", BROKEN)


async def test_forms_that_were_changed(box: Mailbox):
    for path in (RESET, NOT_ME):
        assert await opened(box, path, "POST", data={"password": "x" * 20}) == (400, "text/html", BROKEN)


async def test_too_many_wrong_links(box: Mailbox):
    await box.configure("limits", email_address={"count": 1, "per_s": 3600})
    try:
        pages = [await opened(box, f"{VERIFY}?verify_code=x") for _ in range(2)]
    finally:
        await box.configure("limits")
    assert pages == [(400, "text/html", BROKEN), (429, "text/html", LATER)]


async def test_a_link_while_the_database_fails(box: Mailbox):
    link = await verify_link(box)
    async with box.server.services.database.connection() as conn:
        await conn.execute("alter table codes rename to codes_elsewhere")
        try:
            for path in (link, link.replace(LINK, VERIFY), f"{RESET}?random_code=x"):
                assert await opened(box, path) == (500, "text/html", LATER)
        finally:
            await conn.execute("alter table codes_elsewhere rename to codes")
    assert (await opened(box, link)).status == 200
