"""The words of the reference page that belong to no single endpoint: how to call, how to prove who calls."""

from typing import Any

from app.http import auth, server_tokens, signatures
from app.http.endpoint import API_VERSION, DEFAULT_APP

ABOUT = """
Parley answers in one of three ways: with JSON, with nothing (200 and zero bytes), or with a stream of Server-Sent
Events. An endpoint that is called for a user has two paths: one for client apps, which prove a session, and one
under `/bp/server/` for app servers, which prove themselves and name the user in the path. These are marked *S2S*.

## Errors

An error is `{"error": {"error_type": …, "message": …, "extra"?: …}}`, whatever its status; `message` is
`<error_type>: <what is wrong>`. A path that does not exist is 404 `not_found`, a wrong method 405
`method_not_allowed` with `Allow`. Where `Retry-After` is given, asking again later may help. Every response carries
`X-Request-Id`: name it when you ask for help.

## Requests

Bodies are JSON of at most 128 KiB, no deeper than 32 levels, without a `Content-Encoding`. Unknown fields are
ignored. A path answers with and without a slash at its end.

## Streams

An event is three lines and an empty one:

```
id: 7
event: assistant_output_chunk
data: {"content":{"index":0,"text":"Once"},"timestamp":1790000000000}
```

Ids count 1, 2, 3… in each stream; `timestamp` is in Unix milliseconds. Every stream begins with `start` and ends
with exactly one `end` or `error`. In between, a silence of 15 seconds is broken by `ping`, which has no id. Audio
comes in pieces: those of one stream, or of one `index`, joined are one file that plays.

In the document behind this page, `x-events` of an operation holds the JSON Schema of each event's data.
"""

_SIGN = """
Asked of client apps, unless the app's config `auth` turns it off: `t=<unix seconds>,n=<nonce>,v1=<hex>`.

`v1` is the HMAC-SHA256, with a key of the app, of these lines joined by newlines: `t`, `n`, the method in capitals,
path and query as sent, the SHA-256 of the body in hexadecimal. The nonce, 16 to 64 of `A-Z a-z 0-9 _ -`, may be
left out, and its line with it; one that is sent is good for one request. `t` may be off by 300 seconds. Several
`v1` may stand while keys are replaced. Of a body that goes on after its first JSON object, only that object is
signed. `python -m app sign` computes it.
"""

_SERVER = """
A JWT that the app's server makes and signs with a registered key (EdDSA, ES256, RS256 or HS256; `kid` names it).
Claims: `iss` the app id, `aud` `parley`, `iat`, `exp` at most 10 minutes ahead; optional are `sub` (a user: the
token is good for that one alone), `scope` (tags of this page, parted by spaces) and `jti` (the token is good for
one call). `python -m app token` makes keys and tokens.
"""


def _key(header: str, what: str) -> dict[str, str]:
    return {"type": "apiKey", "in": "header", "name": header, "description": what.strip()}


SECURITY_SCHEMES: dict[str, Any] = {
    "session": _key(auth.SESSION_HEADER, "The session token that a login answers with."),
    "sign": _key(signatures.HEADER, _SIGN),
    "server": _key(server_tokens.HEADER, _SERVER),
    "admin": {"type": "http", "scheme": "bearer", "description": "The operator's token."},
}

TAGS = {
    "account": "Login, logout, and what is known of a user.",
    "ai": "Conversations and speech, as streams; what was said before.",
    "admin": "For the operator: named configs of apps, where every change is a revision, to be read and brought "
    "back; and the streams that live.",
    "files": "Audio and other files behind signed links, which come in answers and events and need no headers.",
    "operations": "For whoever runs the server.",
    "reference": "This page, and the one to talk to the server.",
}

HEADERS: dict[str, Any] = {
    "AppId": {
        "name": "X-Service-App-Id",
        "in": "header",
        "description": "Which app of this server is meant.",
        "schema": {"type": "string", "default": DEFAULT_APP},
    },
    "ApiVersion": {
        "name": "X-Service-Api-Version",
        "in": "header",
        "schema": {"type": "string", "enum": [API_VERSION], "default": API_VERSION},
    },
    "RequestId": {
        "name": "X-Request-Id",
        "in": "header",
        "description": "1 to 64 letters, digits, `.`, `_` or `-`. It comes back in the response and stands in "
        "every log line; where none is given one is made.",
        "schema": {"type": "string"},
    },
}

PATH_PARAMETERS = {
    "user_id": "The user on whose behalf the call is made.",
    "key": "What a signed link names.",
    "conversation_id": "A conversation of the user.",
    "stream_id": "`X-Service-Stream-Id` of the answer that began the stream.",
    "app": "An app of this server.",
    "kind": "A kind of config.",
    "name": "A config's name; `default` where an app has one of the kind.",
    "part": "A file that the page asks for.",
}
