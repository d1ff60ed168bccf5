"""Login methods: the identities with which a user can log in. The last one cannot be removed (§4.5, §4.7)."""

from app.accounts.errors import LastLoginMethod
from app.accounts.phone.sms import config_of
from app.accounts.proofs.addresses import email_config, sending_config
from app.accounts.reports import report_change
from app.services import Services
from storage.accounts import identities, passwords
from storage.accounts.identities import Identity, LinkedIdentity
from storage.postgres.database import Connection
from streams.wire.errors import ConfigInvalid


async def unlink_identity(services: Services, conn: Connection, identity: Identity, *, uid: str) -> bool:
    """Take an identity from a user. Return false if the user does not have it.

    Raises `LastLoginMethod` if the user could not log in without it, and the transaction of `conn` is rolled back.
    That transaction has locked the user, whose identities and password cannot change until it ends. The caller ends
    the sessions that were created with the identity.
    """
    if not await identities.unlink(conn, identity, uid=uid):
        return False
    account = await identities.find_account(conn, identity.app_id, uid)
    left = () if account is None else account.identities
    has_password = await passwords.find(conn, identity.app_id, uid) is not None
    if not any(_is_login_method(services, identity.app_id, linked, has_password=has_password) for linked in left):
        raise LastLoginMethod("this is the last identity with which the user can log in")
    await report_change(services, conn, identity.app_id, uid, "unlinked", platform=identity.platform)
    return True


def _is_login_method(services: Services, app_id: str, linked: LinkedIdentity, *, has_password: bool) -> bool:
    """Return whether a user can log in with an identity under the app's current config.

    A password that the user could set by email does not count until it is set.
    """
    try:
        match linked.platform:
            case "device" | "anonymity":
                return False
            case "name_password":
                return has_password
            case "email" if has_password:
                email_config(services, app_id)
            case "email":
                return sending_config(services, app_id).code_login and linked.trust == "proven"
            case "phone":
                config_of(services, app_id)
            case _:
                services.sign_in.open(app_id, linked.platform)
    except ConfigInvalid:
        return False
    return True
