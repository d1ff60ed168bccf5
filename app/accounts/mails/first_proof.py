"""The first strong proof that the owner of an account receives emails to its address.

Codes, password resets and the button behind a link are strong proofs. That a link was opened is a weak one, because
programs that scan emails open links too.
"""

from datetime import datetime
from typing import Literal

import structlog

from app.account_states import lift_freeze
from app.accounts.reports import report_change
from app.accounts.sessions.revocation import revoke_access
from app.services import Services
from storage.accounts import emails, login_networks
from storage.accounts.identities import Identity
from storage.postgres.database import Connection

log = structlog.get_logger()

StrongProof = Literal["code", "reset", "button"]


async def first_proof(
    services: Services,
    conn: Connection,
    identity: Identity,
    *,
    by: StrongProof,
    now: datetime,
    keep: str | None = None,
    keep_code: str | None = None,
) -> bool:
    """Record a strong proof of the address `identity`. Return whether it is the first one.

    Whoever set up the account may not be the owner of the address. So the first strong proof deletes the password,
    the other identities, the sessions (except `keep`), the codes (except `keep_code`) and the tokens of the
    account, and ends a freeze. `conn` is in a transaction that has locked the user.
    """
    app_id, address = identity.app_id, identity.social_id
    uid = await emails.claimant(conn, app_id, address=address)
    if uid is None:
        return False
    await revoke_access(services, conn, app_id, uid, now=now, keep=keep, keep_code=keep_code)
    platforms = await emails.drop_unproven(conn, app_id, uid)
    for platform in platforms:
        await report_change(services, conn, app_id, uid, "unlinked", platform=platform)
    await login_networks.forget(conn, app_id, uid)
    await emails.mark_verified(conn, app_id, address=address, now=now)
    await lift_freeze(services, conn, app_id, uid)
    log.info("account.first_proof", app_id=app_id, user_id=uid, proof=by, platforms=platforms)
    return True


async def end_unproven_freeze(services: Services, conn: Connection, identity: Identity) -> bool:
    """End the freeze of an account without a strong proof of its address. Return whether there was such a freeze.

    Otherwise, whoever set up the account could keep the owner of the address out by freezing it. A login calls this
    before its session begins, and `first_proof` after that. `conn` is in a transaction that has locked the user.
    """
    uid = await emails.claimant(conn, identity.app_id, address=identity.social_id)
    if uid is None:
        return False
    await lift_freeze(services, conn, identity.app_id, uid)
    return True
