"""What the operations of the API reference need before they can be called, as stories of calls.

Each story has a new user. A step is one of:

- an operation: it is called by its example for curl, and its response is recorded;
- an operation and the command that calls it in place of its example;
- `NAME=value`: sets a variable of the shell, to what the shell makes of the value;
- a command of the shell, whose output is not recorded. `call` is curl with the response's headers, and `mail` reads
  the emails to `$EMAIL` once one of them has the text.

Every response sets variables too: an `order_id` in it sets `ORDER_ID`. Operations of no story are called on their
own.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from streams.wire.codec import dumps

Step = str | tuple[str, str]
Story = Sequence[Step]


def _call(address: str, body: Any = None, *, flags: str = "") -> str:
    """Return a command. Variables in the address and in the body have their values."""
    data = "" if body is None else dumps(body).decode().replace('"', '\\"')
    return f'call "{address}" {flags}' + (f' -d "{data}"' if data else "")


_SESSION = '-H "X-Service-Session-Token: $SESSION"'
_ADMIN = '-H "Authorization: Bearer $ADMIN" -H "X-Parley-Reason: an example" -H "Idempotency-Key: $(uuidgen)"'
_PARAMETERS = '{"strategies":["scripted"],"type":"text","language_code":"en-US","target_language_code":"en-US"}'
_ME, _ADMIN_USER = "/bp/user/me", "/admin/api/users/{app}/{user_id}"
_CONFIG = "/admin/api/configs/{app}/{kind}/{name}"
_BOARD = "/admin/api/leaderboards/{app}/{board}"
_WALLET, _CARD = "/bp/asset/walletpay", "/bp/asset/cardpay"
_APPROVE = 'call "$APPROVE_LINK_HREF" -d action=approve'
_CONFIG_URL = "$URL/admin/api/configs/$APP/$KIND/$NAME"
_ISSUE = _call("$URL/dev/accounts/$PLATFORM/_issue", {"subject": "$ID"})
_NEW_EMAIL = "EMAIL=ada-$SUFFIX@example.com"
_SIGN_UP = ("NAME=ada-$SUFFIX", "POST /bp/user/signup", "SESSION=$SESSION_TOKEN")
_WITH_EMAIL = (
    _NEW_EMAIL,
    _call(
        "$URL/bp/user/signup",
        {"email_password": {"email": "$EMAIL", "password": "correct horse battery"}, "platform": "website"},
    ),
    "SESSION=$SESSION_TOKEN",
    "USER_ID=$UID",
    "mail verify_code",
)
_VERIFIED = (*_WITH_EMAIL, 'call "$URL/bp/user/email/verify?verify_code=$VERIFY_CODE"')
_TALK = f"call -N \"$URL/bp/ai/conversation\" {_SESSION} -d '{_PARAMETERS}Tell me about the sea.'"
_TALK_FOR_5_S = (
    f"{{ (printf %s '{_PARAMETERS}'; sleep 5) | "
    f'call -N -T - -X POST "$URL/bp/ai/conversation" {_SESSION}; }} > /dev/null 2>&1 & sleep 1; '
    f'call "$URL/admin/api/streams?user_id=$USER_ID" {_ADMIN}'
)

_CONVERSATIONS: Sequence[Story] = (
    (
        _TALK,
        "GET /bp/ai/conversation/query",
        "GET /bp/ai/conversations",
        "GET /admin/api/conversations/{app}/{conversation_id}",
        "GET /admin/api/streams/{app}/{stream_id}",
        "GET /admin/api/streams/{app}/{stream_id}/attempts",
        "GET /admin/api/streams/{app}/{stream_id}/events",
        "GET /admin/api/ended_streams",
        "GET /admin/api/costs",
        "DELETE /bp/ai/conversation/{conversation_id}",
    ),
    (_TALK, "DELETE /bp/ai/stream/{stream_id}"),
    (
        _TALK_FOR_5_S,
        "GET /admin/api/streams",
        "GET /admin/api/overview",
        "GET /admin/api/streams/{app}/{stream_id}",
        f"POST {_ADMIN_USER}/streams/{{stream_id}}/cancel",
    ),
)

_ACCOUNTS: Sequence[Story] = (
    (*_SIGN_UP, f"PUT {_ME}/password"),
    ("POST /bp/user/logout",),
    (f"GET {_ME}/sessions", f"DELETE {_ME}/sessions/{{session_id}}"),
    (f"POST {_ME}/deactivate", f"POST {_ME}/deactivate/recover"),
    (f"POST {_ME}/deactivate", f"POST {_ADMIN_USER}/recover"),
    (
        f"POST {_ME}/deactivate",
        f"POST {_ME}/deactivate/confirm",
        "GET /bp/server/user/{user_id}/erasure_receipt",
        f"GET {_ADMIN_USER}/erasure_receipt",
    ),
    (f"POST {_ADMIN_USER}/ban", f"POST {_ADMIN_USER}/unban"),
    (f"POST {_ADMIN_USER}/export", f"POST {_ADMIN_USER}/export/link", f"GET {_ADMIN_USER}/export"),
    (
        *_SIGN_UP,
        "PLATFORM=photo_network",
        "ID=$(date +%s%N)",
        _ISSUE,
        f"POST {_ME}/socialaccount",
        f"DELETE {_ME}/socialaccount/{{platform}}/{{id}}",
    ),
    (
        *_SIGN_UP,
        "PLATFORM=social_network_a",
        "ID=$(date +%s%N)",
        _ISSUE,
        _call(
            f"$URL{_ME}/socialaccount",
            {"social_network_a": {"id": "$ID", "access_token": "$ACCESS_TOKEN"}},
            flags=_SESSION,
        ),
        f"PUT {_ME}/socialaccount/{{platform}}/{{id}}",
    ),
    ("PLATFORM=photo_network", "POST /dev/accounts/{platform}/_issue"),
)

_EMAILS: Sequence[Story] = (
    (
        *_SIGN_UP,
        _NEW_EMAIL,
        "POST /bp/user/send_email_verify_code",
        "mail login",
        "VERIFY_CODE=$(mail login | grep -oE '[0-9]{6} is your' | grep -oE '[0-9]{6}' | head -n 1)",
        f"POST {_ME}/email",
        f"GET {_ME}/email/verify_result",
        f"DELETE {_ME}/email",
    ),
    (
        *_WITH_EMAIL,
        "HEAD /bp/user/email/verify",
        "GET /account/verify",
        "GET /bp/user/email/verify",
        "EMAIL=ada-lovelace-$SUFFIX@example.com",
        f"PUT {_ME}/email",
    ),
    (*_WITH_EMAIL, "POST /account/verify"),
    (*_WITH_EMAIL, "POST /bp/user/email/verify"),
    (
        *_WITH_EMAIL,
        'sleep 60; call "$URL/healthz"',
        f"POST {_ME}/email/send_verify_code",
    ),  # A code is sent once a minute.
    (
        *_VERIFIED,
        "POST /bp/user/email/forgot_password",
        "mail random_code",
        "GET /account/reset",
        "POST /account/reset",
        "mail token=",
        "GET /account/not-me",
        "POST /account/not-me",
    ),
    (*_VERIFIED, "POST /bp/user/email/forgot_password", "mail random_code", "POST /bp/user/email/reset_password"),
    (
        *_VERIFIED,
        "WITHDRAW_ID=w-$SUFFIX",
        "POST /bp/server/user/{user_id}/withdraw/",
        "GET /bp/server/user/{user_id}/withdraw/",
        "GET /admin/api/withdrawals",
    ),
    ("POST /bp/user/send_phone_verify_code", "GET /dev/sms"),
    (
        "EMAIL_TO=ada-$SUFFIX@example.com",
        "EMAIL=$EMAIL_TO",
        "POST /bp/user/me/mail_hub/send",
        "mail token",
        "GET /admin/api/mails",
        ("GET /dev/mail", "mail token"),
        "GET /dev/mail/sent",
        "GET /bp/res/i.gif",
        "HEAD /bp/res/i.gif",
        "GET /bp/res/unsubscribe",
        "POST /bp/res/unsubscribe",
    ),
    (
        "ADDRESS=ada@example.com",
        "PUT /admin/api/suppressions/{app}/{address}",
        "GET /admin/api/suppressions",
        "DELETE /admin/api/suppressions/{app}/{address}",
    ),
    (
        "STRATEGY=welcome",
        "POST /admin/api/mails/{app}/{strategy}/preview",
        "POST /admin/api/mails/{app}/{strategy}/test",
    ),
)

_PAYMENTS: Sequence[Story] = (
    (
        f"POST {_WALLET}/create",
        "ORDER_ID=$ID",
        f"GET {_WALLET}/{{order_id}}/fetch",
        _APPROVE,
        f"POST {_WALLET}/capture",
        f"GET {_WALLET}/sync/{{order_id}}",
        "GET /bp/asset",
        f"GET {_ADMIN_USER}/assets",
        f"GET {_ADMIN_USER}/assets/entries",
        "GET /admin/api/payments/orders",
        "ORDER=$ORDER_ID",
        f"GET {_ADMIN_USER}/orders/{{order}}",
        f"GET {_ADMIN_USER}/orders/{{order}}/refund",
        f"POST {_ADMIN_USER}/orders/{{order}}/refund",
        "GET /admin/api/payments/refunds",
        "GET /admin/api/payments/sales",
        f"GET {_ADMIN_USER}",
        f"GET {_ADMIN_USER}/history",
        "GET /admin/api/webhooks",
        "GET /admin/api/webhooks/{webhook_id}",
        "POST /admin/api/webhooks/{webhook_id}/replay",
    ),
    (
        f"POST {_WALLET}_sub",
        "SUB_ID=$ID",
        f"GET {_WALLET}_sub/{{sub_id}}/fetch",
        _APPROVE,
        f"GET {_WALLET}_sub/{{sub_id}}/sync",
        "GET /admin/api/payments/subscriptions",
        f"POST {_WALLET}_sub/{{sub_id}}/upgrade",
        "SUB_ID=$ID",
        _APPROVE,
        f"GET {_WALLET}_sub/{{sub_id}}/sync_upgrade",
    ),
    (
        f"POST {_CARD}_setup_intent",
        "SETUP_INTENT_ID=$ID",
        "POST /bp/asset/debug/cardpay_setup_intent/confirm",
        f"POST {_CARD}_sub",
        "SUB_ID=$ID",
        f"GET {_CARD}_sub/{{sub_id}}",
        "POST /bp/asset/debug/cardpay_sub/{sub_id}/default_payment_method",
        "KIND=share_groups",
        "NAME=pro",
        _call(_CONFIG_URL, {"value": {"quota": 3, "platforms": ["cardpay"]}}, flags=f"-X PUT {_ADMIN}"),
        "POST /bp/asset/share_group/code",
        _call("$URL/bp/user/login", {"device": {"id": "friend-$SUFFIX"}}),
        "OWNER=$SESSION",
        "SESSION=$SESSION_TOKEN",
        "POST /bp/asset/share_group/join",
        "SESSION=$OWNER",
        f"DELETE {_CARD}_sub/{{sub_id}}",
        _call(_CONFIG_URL, flags=f"-X DELETE {_ADMIN}"),
    ),
    (
        "POST /bp/server/user/{user_id}/asset/cardpay_payment_intent",
        "PAYMENT_INTENT_ID=$ID",
        "POST /bp/asset/debug/cardpay_payment_intent/confirm",
        "GET /bp/server/user/{user_id}/asset/cardpay_payment_intent/{payment_intent_id}",
    ),
    (
        f"POST {_WALLET}/create",
        "ORDER_ID=$ID",
        _APPROVE,
        _call(
            "$PARLEY_SANDBOX_URL/paypal/_control/reprice",
            {"client_id": "sandbox-app", "order_id": "$ORDER_ID", "value": "0.99", "currency": "USD"},
        ),
        f"POST {_WALLET}/capture",
        "GET /admin/api/payments/mismatches",
        "POST /admin/api/payments/mismatches/{mismatch_id}/resolve",
    ),
    (
        f"POST {_ADMIN_USER}/assets",
        f"PATCH {_ADMIN_USER}/assets",
    ),
)

_SINK = {"value": {"url": "{sandbox}/nowhere", "secret": f"whsec_{'A' * 32}", "events": ["asset", "account"]}}
"""A sink whose address does not exist, so that events wait for it."""
_OPERATORS: Sequence[Story] = (
    (
        "KIND=limits",
        "NAME=default",
        f"GET {_CONFIG}",
        f"POST {_CONFIG}/validate",
        f"PUT {_CONFIG}",
        f"GET {_CONFIG}/revisions",
        "FROM=1",
        "TO=2",
        f"GET {_CONFIG}/diff",
        f"POST {_CONFIG}/rollback",
        f"GET {_CONFIG}/references",
    ),
    ("KIND=conversation", "NAME=scripted-text", f"POST {_CONFIG}/try"),
    ("NAME=microblog", "POST /admin/api/sign_in/{app}/{name}/proof_fields"),
    (
        "KIND=events",
        "NAME=warehouse",
        "SINK=warehouse",
        _call(_CONFIG_URL, _SINK, flags=f"-X PUT {_ADMIN}"),
        f"POST {_ADMIN_USER}/assets",
        "GET /admin/api/events",
        "GET /admin/api/events/sinks",
        "POST /admin/api/events/{app}/{sink}/retry",
        f"DELETE {_CONFIG}",
    ),
    (
        "POST /bp/leaderboard/data",
        "POST /bp/leaderboard",
        "BOARD=weekly",
        f"GET {_BOARD}",
        f"GET {_BOARD}/{{period}}",
        f"GET {_BOARD}/{{period}}/ranks",
        _call("$URL/dev/clock", {"app": "default", "at": "$(date -ud '8 days' +%FT%TZ)"}),
        f"POST {_BOARD}/{{period}}/rewards",
        "POST /dev/clock",
        _call("$URL/dev/clock", {"app": "default", "at": None}),
        "GET /dev/clock",
    ),
    (
        "NAME=ada-$SUFFIX",
        "POST /admin/api/operators",
        "OPERATOR=$NAME",
        "PUT /admin/api/operators/{operator}",
        "POST /admin/api/operators/{operator}/rotate",
        "GET /admin/api/operators",
        (
            "POST /admin/api/session",
            _call("$URL/admin/api/session", {"token": "$TOKEN"}, flags='-H "X-Parley-Csrf: 1"'),
        ),
        "DELETE /admin/api/operators/{operator}",
        "GET /admin/api/audit",
    ),
)

_DECODE = (
    "import sys; from vendors.local.engines.decoding import decode; "
    "sys.stdout.buffer.write((decode(sys.stdin.buffer.read()) * 32767).astype('<i2').tobytes())"
)
"""Turns a file into 16 kHz mono 16-bit PCM."""
_ASSESS = (
    'command curl -s "$AUDIO_URL" | .venv/bin/python -c "$DECODE" | base64 -w 0 | '
    """{ printf '{"strategy":"local","data":{"reference_text":"Good morning."}}'; cat; } | """
    f'call "$URL/bp/ai/audio/pronunciation" {_SESSION} --data-binary @-'
)
_TASKS: Sequence[Story] = (
    ("POST /bp/ai/imagine", "GET /bp/ai/imagine/{task_id}", "GET /admin/api/image_tasks"),
    (
        "POST /bp/ai/async/modelhub",
        "PREDICTION_ID=$ID",
        "GET /bp/ai/async/modelhub/{prediction_id}",
        "GET /admin/api/predictions",
    ),
    (
        _call("$URL/bp/ai/audio/tts", {"strategies": ["local"], "text": "Good morning."}, flags=f"-N {_SESSION}"),
        f"DECODE={_DECODE}",
        ("GET /files/{key}", 'call "$AUDIO_URL"'),
        ("HEAD /files/{key}", 'call --head "$AUDIO_URL"'),
        (
            "POST /bp/ai/audio/pronunciation",
            _ASSESS,
        ),
    ),
)

_PAGES: Sequence[Story] = (
    ("PART=theme.css", *(f"GET {pages}static/{{part}}" for pages in ("/", "/console/", "/dev/", "/docs/"))),
)

STORIES: Sequence[Story] = (*_CONVERSATIONS, *_ACCOUNTS, *_EMAILS, *_PAYMENTS, *_OPERATORS, *_TASKS, *_PAGES)

WRITTEN: Mapping[str, Any] = {
    # Usually, the response is empty. It has this body after too many emails to the address.
    "POST /bp/user/me/email": {"next_mail_s": 58},
    "PUT /bp/user/me/email": {"next_mail_s": 58},
    # A job is held when all its attempts have failed, which takes days.
    "POST /admin/api/jobs/held/{job_id}/retry": {},
    "DELETE /admin/api/jobs/held/{job_id}": {},
    # The platform must have lost a withdrawal.
    "POST /admin/api/withdrawals/{app}/{withdrawal_id}/settle": {
        "withdrawal_id": "01a229b2fafc781abb93a564ad1cf2cd",
        "app": "default",
        "user_id": "01a229b2fad8715f8c055ebcf6aab3b3",
        "withdraw_id": "w-1",
        "platform": "paypal",
        "config": "Default",
        "amount": 1000,
        "currency": "USD",
        "state": "paid",
        "reason": "",
        "payout_id": "5KH4TJS9YDVPC",
        "created_at": "2026-01-31T09:00:00Z",
        "submitted_at": "2026-01-31T09:00:01Z",
        "unknown_at": "2026-02-07T09:00:00Z",
        "settled_at": "2026-02-08T10:30:00Z",
    },
    # The link that `make run` prints can be used once.
    "POST /dev/console/session": {"csrf": "5f1d7a1b8d0c4b7e9a63f2d418c0e95a"},
}
"""Responses of the operations that no story can call, and why."""
