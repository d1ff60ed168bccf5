"""The endpoints that read a user, and record that it was active (§4.5, §4.8)."""

from app.accounts.errors import AccountNotFound
from app.accounts.sign_in.views import UserReply, user_view
from app.http.rows.endpoint import Call
from app.http.rows.replies import Empty
from storage.accounts import identities, users


async def get_user(call: Call) -> UserReply:
    """Read the user.

    `social_accounts` contain the tokens and profiles that their platforms have sent.
    """
    async with call.services.database.connection() as conn:
        account = await identities.find_account(conn, call.app_id, call.caller.user)
    if account is None:
        raise AccountNotFound("user does not exist")
    return UserReply(user=user_view(account, tokens_for=call.app_id, keyring=call.services.keyring))


async def record_activity(call: Call) -> Empty:
    """Record that the user was active now.

    App servers call this for users that they act for without logging them in.
    """
    now = call.services.clock.now(call.app_id)
    async with call.services.database.connection() as conn:
        await users.record_activity(conn, call.app_id, call.caller.user, now=now)
    return Empty()
