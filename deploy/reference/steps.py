"""Steps of several stories (`stories.py`), as commands of the shell."""

from collections.abc import Sequence
from typing import Any

from streams.wire.codec import dumps

Step = str | tuple[str, str]
Story = Sequence[Step]


def call(address: str, body: Any = None, *, flags: str = "") -> str:
    """Return a command. Variables in the address and in the body have their values."""
    data = "" if body is None else dumps(body).decode().replace('"', '\\"')
    return f'call "{address}" {flags}' + (f' -d "{data}"' if data else "")


SESSION = '-H "X-Service-Session-Token: $SESSION"'
ADMIN = '-H "Authorization: Bearer $ADMIN" -H "X-Parley-Reason: an example" -H "Idempotency-Key: $(date +%s%N)"'
PARAMETERS = '{"strategies":["scripted"],"type":"text","language_code":"en-US","target_language_code":"en-US"}'
ME, ADMIN_USER = "/bp/user/me", "/admin/api/users/{app}/{user_id}"
CONFIG = "/admin/api/configs/{app}/{kind}/{name}"
BOARD = "/admin/api/leaderboards/{app}/{board}"
WALLET, CARD = "/bp/asset/walletpay", "/bp/asset/cardpay"
APPROVE = 'call "$APPROVE_LINK_HREF" -d action=approve'
CONFIG_URL = "$URL/admin/api/configs/$APP/$KIND/$NAME"
ISSUE = call("$URL/dev/accounts/$PLATFORM/_issue", {"subject": "$ID"})
NEW_EMAIL = "EMAIL=ada-$SUFFIX@example.com"
SIGN_UP = ("NAME=ada-$SUFFIX", "POST /bp/user/signup", "SESSION=$SESSION_TOKEN")
WITH_EMAIL = (
    NEW_EMAIL,
    call(
        "$URL/bp/user/signup",
        {"email_password": {"email": "$EMAIL", "password": "correct horse battery"}, "platform": "website"},
    ),
    "SESSION=$SESSION_TOKEN",
    "USER_ID=$UID",
    "mail verify_code",
)
VERIFIED = (*WITH_EMAIL, 'call "$URL/bp/user/email/verify?verify_code=$VERIFY_CODE"')
TALK = f"call -N \"$URL/bp/ai/conversation\" {SESSION} -d '{PARAMETERS}Tell me about the sea.'"
TALK_FOR_5_S = (
    f"{{ (printf %s '{PARAMETERS}'; sleep 5) | "
    f'call -N -T - -X POST "$URL/bp/ai/conversation" {SESSION}; }} > /dev/null 2>&1 & sleep 1; '
    f'call "$URL/admin/api/streams?user_id=$USER_ID" {ADMIN}'
)
