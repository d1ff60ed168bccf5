"""The first proof that somebody receives emails to the address of an account."""

from datetime import datetime

from app.account_states import lift_freeze
from app.accounts.reports import report_change
from app.accounts.sessions.revocation import revoke_access
from app.services import Services
from storage.accounts import emails, login_networks
from storage.accounts.identities import Identity
from storage.postgres.database import Connection


async def first_proof(
    services: Services, conn: Connection, identity: Identity, *, now: datetime, keep: str | None = None
) -> bool:
    """Record that a code has proven the address `identity`. Return whether this is the first proof.

    Whoever signed up with the address may not be its owner. So the first proof deletes the password, the other
    identities, the sessions (except `keep`), the codes and the tokens of the account, and ends a freeze. `conn` is
    in a transaction that has locked the user.
    """
    app_id, address = identity.app_id, identity.social_id
    uid = await emails.unverified_owner(conn, app_id, address=address)
    if uid is None:
        return False
    await revoke_access(services, conn, app_id, uid, now=now, keep=keep)
    for platform in await emails.drop_unproven(conn, app_id, uid):
        await report_change(services, conn, app_id, uid, "unlinked", platform=platform)
    await login_networks.forget(conn, app_id, uid)
    await emails.mark_verified(conn, app_id, address=address, now=now)
    await lift_freeze(services, conn, app_id, uid)
    return True


async def end_unproven_freeze(services: Services, conn: Connection, identity: Identity) -> bool:
    """End the freeze of an account whose address was not proven before. Return whether there was such a freeze.

    Otherwise, whoever signed up with the address could keep its owner out by freezing the account. A login calls
    this before its session begins, and `first_proof` after that. `conn` is in a transaction that has locked the
    user.
    """
    uid = await emails.unverified_owner(conn, identity.app_id, address=identity.social_id)
    if uid is None:
        return False
    await lift_freeze(services, conn, identity.app_id, uid)
    return True
