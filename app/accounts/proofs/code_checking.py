"""Checking codes that were sent to an email address or a phone number. Wrong ones count as failed logins."""

from app.accounts.proofs.throttle import SERVER, Guess, network_of
from app.http.rows.endpoint import Call
from storage.accounts import identities, login_networks
from storage.accounts.codes import CodeKind, CodeRefused, Origin, RightCode
from storage.accounts.identities import Identity


async def check_sent_code(
    call: Call, kind: CodeKind, identity: Identity, code: str | None, *, field: str
) -> RightCode:
    """Return the code that was sent to the address or number of `identity`, if `code` is right.

    `field` is the name of its field in the request. Raises errors of codes, and `TooManyFailedLogins`.
    """
    app_id, known = call.app_id, frozenset({SERVER})
    async with call.services.database.connection() as conn:
        uid = await identities.user_of(conn, identity)
        if uid is not None:
            known |= await login_networks.of_user(conn, app_id, uid)
    guess = await Guess.begin(call, identity, uid)
    origin, now = Origin(network_of(call), known), call.services.clock.now(app_id)
    try:
        right = await call.services.codes.check(
            app_id, kind, identity.social_id, code=code, origin=origin, now=now, field=field
        )
    except CodeRefused as error:
        await guess.finish(right=not error.wrong)
        raise
    await guess.finish(right=True)
    return right
