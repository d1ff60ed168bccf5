"""The texts of the reference page that do not belong to one endpoint: conventions and authentication."""

import re
from typing import Any

from app.http.callers import auth, operators, server_tokens, signatures
from app.http.paths import APP_ID, USER_ID
from app.http.rows.endpoint import API_VERSION, DEFAULT_APP

_START = """
The API of a server for voice and chat apps: conversations by text and speech, accounts, payments, and more. All
paths begin at `{url}`. A first request signs a new user in. Its response has the session token that other requests
need:

```sh
curl {url}/bp/user/login \\
  -d '{{"device": {{"id": "my-first-device"}}}}'
```

In production, requests of apps are also signed. The guide [Your first app](/docs/guides/first-app) leads from here
to a spoken answer.

- [**Conversations**](#tag/ai) Speak or type, and hear the answer while it is made
- [**Sign in**](#tag/account) Devices, email addresses, phone numbers, and sign-in platforms
- [**Payments**](#tag/cards) Cards, wallets, and what users own
- [**Webhooks**](#tag/webhooks) What platforms report to this server
"""

_ABOUT = """
## Authentication

- **Client apps** send `X-Service-Session-Token`, the session token from the response to a login, and
  `X-Service-Sign`, a signature of the request, unless the app's config `auth` turns that off.
- **App servers** send `X-Service-Auth-Token`, a server token: a JWT that the app server signs.
- **Operators** send `Authorization: Bearer` and their token.

App servers call paths under `/bp/server/`, marked *S2S*, and name the user in the path. Many endpoints exist in
both groups, *Apps* and *App servers*. Platforms call the endpoints of the group *Webhooks*. Each endpoint lists the
headers that it needs. `X-Service-App-Id` names the app; without it, the app is `default`.

## Errors

Every error response has this body, whatever the status. `extra` is optional:

```json
{
  "error": {
    "error_type": "invalid_parameter",
    "message": "invalid_parameter: text is required",
    "extra": {}
  }
}
```

`message` is `<error_type>: <what is wrong>`. An unknown path returns 404 `not_found`. A wrong method returns 405
`method_not_allowed` with `Allow`. If a response has `Retry-After`, a later retry may succeed, unless
`extra.retryable` is false. `backend unavailable` and `gateway` always have both. Every response has `X-Request-Id`:
quote it when you ask for support.

Responses have `Cache-Control: no-store`, errors included, so that no cache keeps data of users. Only static pages
and files behind signed links may be cached.

## Requests

Parley responds in one of three ways: with JSON, with an empty 200 response, or with a stream of Server-Sent Events.

Bodies are JSON of at most 128 KiB, nested at most 32 levels deep, without a `Content-Encoding`. Unknown fields are
ignored. A trailing slash in a path is optional.

`platform` is the client's operating system, a sign-in platform, a payment platform or a vendor: its description
says which. Times that are not set are the zero time, `0001-01-01T00:00:00Z`, in fields of RFC 3339. The guide
[Conventions](/docs/guides/conventions) explains these, numbers and errors.

## Examples

The examples for `curl` can be run in a shell that has these variables. Others have the names of parameters, such as
`$USER_ID` for the `user_id` of the path. The responses are those of a development server, with lists cut to two
items.

| variable | what it holds | where you get it |
|---|---|---|
| `$SESSION` | a session token | printed by `make run`; or the response to a login |
| `$SERVER` | a server token | printed by `make run`; or `python -m app token make` |
| `$ADMIN` | the token of an operator | the file `.parley/admin-token` of `make run`; or `python -m app operators` |

## Streams

An event is three lines followed by an empty line:

```
id: 7
event: assistant_output_chunk
data: {"content":{"index":0,"text":"Once"},"timestamp":1790000000000}
```

Ids count 1, 2, 3… in each stream. `timestamp` is in Unix milliseconds. Every stream begins with `start` and ends
with exactly one `end` or `error`. After 15 seconds without an event the server sends `ping`, which has no id. Audio
is sent in pieces: concatenate all pieces of a stream, or of one `index`, to get one playable file.

In the OpenAPI document behind this page, `x-events` of an operation holds the JSON Schema of each event's data.
"""

_GUIDE_LINK = re.compile(r"\[([^]]+)\]\(/docs/guides[^)]*\)")


def about(public_url: str, *, guides: bool) -> str:
    """Return the introduction of the document. `guides`: whether the server has the guides as pages to link to."""
    text = f"{_START.format(url=public_url)}{_ABOUT}".strip()
    return text if guides else _GUIDE_LINK.sub(r"*\1*", text)


_SIGN = """
Required of client apps, unless the app's config `auth` turns it off. Format: `t=<unix seconds>,n=<nonce>,v1=<hex>`.

`v1` is the HMAC-SHA256, with a key of the app, of these lines joined by newlines: `t`, `n`, the method in capitals,
path and query as sent, the SHA-256 of the body in hexadecimal. The nonce consists of 16 to 64 of the characters
`A-Z a-z 0-9 _ -`. It is optional unless the app requires it; without it, omit its line as well. A nonce is valid
for one request. `t` may differ from the server's clock by at most 300 seconds. While keys are being replaced,
several `v1` may be sent. If the body holds a JSON object followed by other input, only that object is signed.
`python -m app sign` computes the header.
"""

_ADMIN = """
The token of an operator, or the root token (`PARLEY_ADMIN_TOKEN`). An operator has one of the roles `viewer`
(reads), `editor` (also changes configs and jobs) and `admin` (also manages operators). The root token includes all
roles. Each endpoint lists the role that it requires. `python -m app operators` adds operators. Each change is
recorded in the audit log.
"""

_SERVER = """
A JWT that the app server creates and signs with a registered key (EdDSA, ES256, RS256 or HS256; `kid` names the
key). Required claims: `iss`, the app id; `aud`, `parley`; `iat`; `exp`, at most 10 minutes ahead. Optional claims:
`sub`, the only user that the token is valid for; `scope`, the scopes that it is valid for, separated by spaces;
`jti`, which makes the token valid for one call only (required for withdrawals and payment intents). Each endpoint
lists the scope that it requires, such as `ai`. `python -m app token` creates keys and tokens.
"""


def _key(header: str, description: str) -> dict[str, str]:
    return {"type": "apiKey", "in": "header", "name": header, "description": description.strip()}


SECURITY_SCHEMES: dict[str, Any] = {
    "session": _key(auth.SESSION_HEADER, "The session token from the response to a login."),
    "sign": _key(signatures.HEADER, _SIGN),
    "server": _key(server_tokens.HEADER, _SERVER),
    "admin": {"type": "http", "scheme": "bearer", "description": _ADMIN.strip()},
}

ONE_CALL = (
    "The server token must have a `jti`, which is accepted once. A repeat of the request needs a new one. While "
    "Valkey is unavailable, a `jti` cannot be checked, and the response is 503."
)
"""The description of an S2S path whose tokens are valid for one call adds this."""

HEADERS: dict[str, Any] = {
    "AppId": {
        "name": "X-Service-App-Id",
        "in": "header",
        "description": "The app of this server that the request is for.",
        "schema": {"type": "string", "default": DEFAULT_APP},
    },
    "ApiVersion": {
        "name": "X-Service-Api-Version",
        "in": "header",
        "schema": {"type": "string", "enum": [API_VERSION], "default": API_VERSION},
    },
    "Reason": {
        "name": operators.REASON_HEADER,
        "in": "header",
        "description": "Why the change is made, for the audit log. At most 500 characters of one line.",
        "schema": {"type": "string"},
    },
    "RequestId": {
        "name": "X-Request-Id",
        "in": "header",
        "description": "1 to 64 letters, digits, `.`, `_` or `-`. It is returned in the response and written to "
        "every log line. If it is absent, the server generates one.",
        "schema": {"type": "string"},
    },
}

RATE_LIMITS = {
    "RateLimit-Policy": "The rates that the call counts against: `q` calls in `w` seconds.",
    "RateLimit": "The remaining calls: `r` immediately, and all of them again after `t` seconds.",
}

PATH_PARAMETERS = {
    USER_ID: "The user on whose behalf the call is made.",
    APP_ID: "The app of this server that the call is for.",
}
"""Descriptions of the path parameters that are not fields of a model."""
