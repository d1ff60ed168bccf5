"""A client of Parley servers.

`ParleyClient` is for apps: it signs in a user, converses by text or voice, and calls the other endpoints.
`ServerClient` is for the server of an app, which acts for any user, and `verify_webhook` for the events that it
receives.

- **A stream survives its connection.** `streams/reader.py` resumes it where it was cut, checks that no id is
  missing, and compares the digest of `end`; whoever iterates over a turn sees neither a cut nor a repeated event.
- **A request is signed for each attempt** (`http.py`), since a nonce is valid once and aiohttp repeats some
  requests.
- **Unknown events and fields are passed on**, because servers are updated before apps. What is malformed is an
  error.
"""

from parley_client.backoff import Backoff
from parley_client.client import ParleyClient
from parley_client.errors import ConnectionLost, DigestMismatch, NotUnderstood, ParleyError
from parley_client.server.client import ServerClient
from parley_client.server.tokens import ServerKey, server_token
from parley_client.server.user import ServerUser
from parley_client.server.webhooks import WebhookEvent, WebhookRefused, verify_webhook
from parley_client.session import FileStore, Session, SessionStore
from parley_client.signatures import sign
from parley_client.streams.events import (
    AudioBegins,
    AudioChunk,
    AudioFile,
    End,
    EndOfSpeech,
    Event,
    OtherEvent,
    Paragraph,
    Restart,
    Start,
    StreamDigest,
    TextChunk,
    UserInput,
    Viseme,
    Visemes,
)
from parley_client.streams.reader import ConnectionState, OnConnection
from parley_client.streams.turns import EventStream, Speech, Turn
from parley_client.types import TurnDetection

__all__ = [
    "AudioBegins",
    "AudioChunk",
    "AudioFile",
    "Backoff",
    "ConnectionLost",
    "ConnectionState",
    "DigestMismatch",
    "End",
    "EndOfSpeech",
    "Event",
    "EventStream",
    "FileStore",
    "NotUnderstood",
    "OnConnection",
    "OtherEvent",
    "Paragraph",
    "ParleyClient",
    "ParleyError",
    "Restart",
    "ServerClient",
    "ServerKey",
    "ServerUser",
    "Session",
    "SessionStore",
    "Speech",
    "Start",
    "StreamDigest",
    "TextChunk",
    "Turn",
    "TurnDetection",
    "UserInput",
    "Viseme",
    "Visemes",
    "WebhookEvent",
    "WebhookRefused",
    "server_token",
    "sign",
    "verify_webhook",
]
