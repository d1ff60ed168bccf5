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

from collections.abc import Sequence

from deploy.reference.steps import (
    ADMIN,
    ADMIN_USER,
    APPROVE,
    BOARD,
    CARD,
    CONFIG,
    CONFIG_URL,
    ISSUE,
    ME,
    NEW_EMAIL,
    SESSION,
    SIGN_UP,
    TALK,
    TALK_FOR_5_S,
    VERIFIED,
    WALLET,
    WITH_EMAIL,
    Story,
    call,
)

_CONVERSATIONS: Sequence[Story] = (
    (
        TALK,
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
    (TALK, "DELETE /bp/ai/stream/{stream_id}"),
    (
        TALK_FOR_5_S,
        "GET /admin/api/streams",
        "GET /admin/api/overview",
        "GET /admin/api/streams/{app}/{stream_id}",
        f"POST {ADMIN_USER}/streams/{{stream_id}}/cancel",
    ),
)

_ACCOUNTS: Sequence[Story] = (
    (*SIGN_UP, f"PUT {ME}/password"),
    ("POST /bp/user/logout",),
    (f"GET {ME}/sessions", f"DELETE {ME}/sessions/{{session_id}}"),
    (f"POST {ME}/deactivate", f"POST {ME}/deactivate/recover"),
    (f"POST {ME}/deactivate", f"POST {ADMIN_USER}/recover"),
    (
        f"POST {ME}/deactivate",
        f"POST {ME}/deactivate/confirm",
        "GET /bp/server/user/{user_id}/erasure_receipt",
        f"GET {ADMIN_USER}/erasure_receipt",
    ),
    (f"POST {ADMIN_USER}/ban", f"POST {ADMIN_USER}/unban"),
    (f"POST {ADMIN_USER}/export", f"POST {ADMIN_USER}/export/link", f"GET {ADMIN_USER}/export"),
    (
        *SIGN_UP,
        "PLATFORM=photo_network",
        "ID=$(date +%s%N)",
        ISSUE,
        f"POST {ME}/socialaccount",
        f"DELETE {ME}/socialaccount/{{platform}}/{{id}}",
    ),
    (
        *SIGN_UP,
        "PLATFORM=social_network_a",
        "ID=$(date +%s%N)",
        ISSUE,
        call(
            f"$URL{ME}/socialaccount",
            {"social_network_a": {"id": "$ID", "access_token": "$ACCESS_TOKEN"}},
            flags=SESSION,
        ),
        f"PUT {ME}/socialaccount/{{platform}}/{{id}}",
    ),
    ("PLATFORM=photo_network", "POST /dev/accounts/{platform}/_issue"),
)

_REDIRECT = {
    "value": {
        "code_login": True,
        "activation": True,
        "mail_accounts": ["inbox"],
        "verify_redirect_url": "https://app.example/verified",
    }
}
_EMAILS: Sequence[Story] = (
    (
        *SIGN_UP,
        NEW_EMAIL,
        "POST /bp/user/send_email_verify_code",
        "mail login",
        "VERIFY_CODE=$(mail login | grep -oE '[0-9]{6} is your' | grep -oE '[0-9]{6}' | head -n 1)",
        f"POST {ME}/email",
        f"GET {ME}/email/verify_result",
        f"DELETE {ME}/email",
    ),
    (
        *WITH_EMAIL,
        "HEAD /bp/user/email/verify",
        "GET /account/verify",
        "GET /bp/user/email/verify",
        "EMAIL=ada-lovelace-$SUFFIX@example.com",
        f"PUT {ME}/email",
    ),
    (*WITH_EMAIL, "POST /account/verify"),
    (
        *WITH_EMAIL,
        "KIND=email",
        "NAME=default",
        call(CONFIG_URL, _REDIRECT, flags=f"-X PUT {ADMIN}"),
        "POST /bp/user/email/verify",
        call(f"{CONFIG_URL}/rollback", {"revision": 1}, flags=ADMIN),
    ),
    (
        *WITH_EMAIL,
        'sleep 60; call "$URL/healthz"',
        f"POST {ME}/email/send_verify_code",
    ),  # A code is sent once a minute.
    (
        *VERIFIED,
        "POST /bp/user/email/forgot_password",
        "mail random_code",
        "GET /account/reset",
        "POST /account/reset",
        "mail token=",
        "GET /account/not-me",
        "POST /account/not-me",
    ),
    (*VERIFIED, "POST /bp/user/email/forgot_password", "mail random_code", "POST /bp/user/email/reset_password"),
    (
        *VERIFIED,
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
        "GET /dev/mail",
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
        f"POST {WALLET}/create",
        "ORDER_ID=$ID",
        f"GET {WALLET}/{{order_id}}/fetch",
        APPROVE,
        f"POST {WALLET}/capture",
        f"GET {WALLET}/sync/{{order_id}}",
        "GET /bp/asset",
        f"GET {ADMIN_USER}/assets",
        f"GET {ADMIN_USER}/assets/entries",
        "GET /admin/api/payments/orders",
        "ORDER=$ORDER_ID",
        f"GET {ADMIN_USER}/orders/{{order}}",
        f"GET {ADMIN_USER}/orders/{{order}}/refund",
        f"POST {ADMIN_USER}/orders/{{order}}/refund",
        "GET /admin/api/payments/refunds",
        "GET /admin/api/payments/sales",
        f"GET {ADMIN_USER}",
        f"GET {ADMIN_USER}/history",
        "GET /admin/api/webhooks",
        "GET /admin/api/webhooks/{webhook_id}",
        "POST /admin/api/webhooks/{webhook_id}/replay",
    ),
    (
        f"POST {WALLET}_sub",
        "SUB_ID=$ID",
        f"GET {WALLET}_sub/{{sub_id}}/fetch",
        APPROVE,
        f"GET {WALLET}_sub/{{sub_id}}/sync",
        "GET /admin/api/payments/subscriptions",
        f"POST {WALLET}_sub/{{sub_id}}/upgrade",
        "SUB_ID=$ID",
        APPROVE,
        f"GET {WALLET}_sub/{{sub_id}}/sync_upgrade",
    ),
    (
        f"POST {CARD}_setup_intent",
        "SETUP_INTENT_ID=$ID",
        "POST /bp/asset/debug/cardpay_setup_intent/confirm",
        f"POST {CARD}_sub",
        "SUB_ID=$ID",
        f"GET {CARD}_sub/{{sub_id}}",
        "POST /bp/asset/debug/cardpay_sub/{sub_id}/default_payment_method",
        "KIND=share_groups",
        "NAME=pro",
        call(CONFIG_URL, {"value": {"quota": 3, "platforms": ["cardpay"]}}, flags=f"-X PUT {ADMIN}"),
        "POST /bp/asset/share_group/code",
        call("$URL/bp/user/login", {"device": {"id": "friend-$SUFFIX"}}),
        "OWNER=$SESSION",
        "SESSION=$SESSION_TOKEN",
        "POST /bp/asset/share_group/join",
        "SESSION=$OWNER",
        f"DELETE {CARD}_sub/{{sub_id}}",
        call(CONFIG_URL, flags=f"-X DELETE {ADMIN}"),
    ),
    (
        "POST /bp/server/user/{user_id}/asset/cardpay_payment_intent",
        "PAYMENT_INTENT_ID=$ID",
        "POST /bp/asset/debug/cardpay_payment_intent/confirm",
        "GET /bp/server/user/{user_id}/asset/cardpay_payment_intent/{payment_intent_id}",
    ),
    (
        f"POST {WALLET}/create",
        "ORDER_ID=$ID",
        APPROVE,
        call(
            "$PARLEY_SANDBOX_URL/paypal/_control/reprice",
            {"client_id": "sandbox-app", "order_id": "$ORDER_ID", "value": "0.99", "currency": "USD"},
        ),
        f"POST {WALLET}/capture",
        "GET /admin/api/payments/mismatches",
        "POST /admin/api/payments/mismatches/{mismatch_id}/resolve",
    ),
    (
        f"POST {ADMIN_USER}/assets",
        f"PATCH {ADMIN_USER}/assets",
    ),
)

_SINK = {"value": {"url": "{sandbox}/nowhere", "secret": f"whsec_{'A' * 32}", "events": ["asset", "account"]}}
"""A sink whose address does not exist, so that events wait for it."""
_OPERATORS: Sequence[Story] = (
    (
        "KIND=limits",
        "NAME=default",
        f"GET {CONFIG}",
        f"POST {CONFIG}/validate",
        f"PUT {CONFIG}",
        f"GET {CONFIG}/revisions",
        "FROM=1",
        "TO=2",
        f"GET {CONFIG}/diff",
        f"POST {CONFIG}/rollback",
        f"GET {CONFIG}/references",
    ),
    ("KIND=conversation", "NAME=scripted-text", f"POST {CONFIG}/try"),
    ("NAME=microblog", "POST /admin/api/sign_in/{app}/{name}/proof_fields"),
    (
        "KIND=events",
        "NAME=warehouse",
        "SINK=warehouse",
        call(CONFIG_URL, _SINK, flags=f"-X PUT {ADMIN}"),
        f"POST {ADMIN_USER}/assets",
        "GET /admin/api/events",
        "GET /admin/api/events/sinks",
        "POST /admin/api/events/{app}/{sink}/retry",
        f"DELETE {CONFIG}",
    ),
    (
        "POST /bp/leaderboard/data",
        "POST /bp/leaderboard",
        "BOARD=weekly",
        f"GET {BOARD}",
        f"GET {BOARD}/{{period}}",
        f"GET {BOARD}/{{period}}/ranks",
        call("$URL/dev/clock", {"app": "default", "at": "$(date -ud '8 days' +%FT%TZ)"}),
        f"POST {BOARD}/{{period}}/rewards",
        "POST /dev/clock",
        call("$URL/dev/clock", {"app": "default", "at": None}),
        "GET /dev/clock",
    ),
    (
        "NAME=ada-$SUFFIX",
        "POST /admin/api/operators",
        "OPERATOR=$NAME",
        "PUT /admin/api/operators/{operator}",
        "POST /admin/api/operators/{operator}/rotate",
        "GET /admin/api/operators",
        "POST /admin/api/session",
        "DELETE /admin/api/operators/{operator}",
        "GET /admin/api/audit",
    ),
)

_DECODE = (
    "import sys; from vendors.local.engines.decoding import decode; "
    "sys.stdout.buffer.write((decode(sys.stdin.buffer.read()) * 32767).astype('<i2').tobytes())"
)
"""Turns a file into 16 kHz mono 16-bit PCM."""
_READ = "Good morning. What is the capital of Japan?"
_TASKS: Sequence[Story] = (
    ("POST /bp/ai/imagine", "GET /bp/ai/imagine/{task_id}", "GET /admin/api/image_tasks"),
    (
        "POST /bp/ai/async/modelhub",
        "PREDICTION_ID=$ID",
        "GET /bp/ai/async/modelhub/{prediction_id}",
        "GET /admin/api/predictions",
    ),
    (
        call("$URL/bp/ai/audio/tts", {"strategies": ["local"], "text": _READ}, flags=f"-N {SESSION}"),
        f"DECODE={_DECODE}",
        "KEY=${AUDIO_URL#*/files/}",
        "GET /files/{key}",
        "HEAD /files/{key}",
        'command curl -s "$AUDIO_URL" | ../.venv/bin/python -c "$DECODE" > hello.pcm; call "$URL/healthz"',
        "POST /bp/ai/audio/pronunciation",
    ),
)

_PAGES: Sequence[Story] = (
    ("GUIDE=first-app", "GET /docs/guides/{guide}"),
    ("PART=theme.css", *(f"GET {pages}static/{{part}}" for pages in ("/", "/console/", "/dev/", "/docs/"))),
)

STORIES: Sequence[Story] = (*_CONVERSATIONS, *_ACCOUNTS, *_EMAILS, *_PAYMENTS, *_OPERATORS, *_TASKS, *_PAGES)
