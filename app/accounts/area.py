"""The areas of the account endpoints, by who may call them."""

from dataclasses import replace

from app.accounts.errors import AccountNotFound
from app.http.callers.area import Area, Section
from app.http.callers.caller import Access
from streams.wire.errors import ConfigInvalid

ACCOUNT = Area(
    "account",
    "Accounts",
    "Login, logout, user data and sessions.",
    sections=(
        Section(
            "account_email",
            "Emails and passwords",
            "Verification of email addresses and phone numbers by codes, and passwords.",
            (
                "/bp/user/send_",
                "/bp/user/email/",
                "/bp/user/me/email",
                "/bp/user/me/password",
                "/bp/user/detect",
            ),
        ),
        Section(
            "account_identities",
            "Identities",
            "Identities at third-party platforms with which a user logs in.",
            ("/bp/user/me/social", "/bp/server/user/{user_id}/social"),
        ),
    ),
    s2s=True,
    scope="account",
)
BEFORE_LOGIN = replace(ACCOUNT, access=Access.SIGNED)
OF_USER = replace(ACCOUNT, accepts_session=True)
"""Endpoints whose S2S paths also accept a session of the user."""
OWN_ACCOUNT = replace(OF_USER, frozen_allowed=True)
SOCIAL = replace(OF_USER, unknown_user_error=AccountNotFound)
"""Endpoints of §4.5."""
SIGN_UP = replace(BEFORE_LOGIN, statuses={ConfigInvalid: 500})
CLIENT_ONLY = replace(ACCOUNT, s2s=False, scope="")
EMAIL_FLOW = replace(CLIENT_ONLY, statuses={ConfigInvalid: 417})
"""Endpoints of §4.7 that need a session."""
BEFORE_LOGIN_BY_CODE = replace(EMAIL_FLOW, access=Access.SIGNED)
"""Endpoints that send codes before a login."""
SERVER_ONLY = replace(ACCOUNT, unknown_user_error=AccountNotFound)
