"""What is deleted of an account by age, and with its user."""

import pytest

from tests.app.accounts.mailbox import Mailbox, change_address, new_address, new_owner, session_of


async def deactivate(box: Mailbox, session: dict[str, str]) -> None:
    for step in ("", "/confirm"):
        assert await box.post(f"me/deactivate{step}", None, **session) == (200, None)


@pytest.mark.parametrize("taken", [False, True])
async def test_codes_for_an_earlier_address_are_deleted_with_its_user(box: Mailbox, *, taken: bool):
    """But not those of another user who has the address now."""
    address, session = await new_owner(box)
    await change_address(box, session, new_address())
    code, nth = await box.code(address, nth=4), 5
    if taken:
        session_of(await box.code_login(address, code))
        code = await box.code(address, nth=nth)
    await deactivate(box, session)
    async with box.server.services.database.connection() as conn:
        left = await conn.fetchval("select count(*) from codes where target = $1 and closed_at is null", address)
    assert left == (1 if taken else 0)
    if taken:
        session_of(await box.code_login(address, code))
