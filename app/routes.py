"""The route table: one row per endpoint. Documentation, authentication and 405 responses are derived from it."""

from app.accounts.routes import ACCOUNT_ROUTES
from app.admin.configs import CONFIG_ROUTES
from app.admin.jobs import JOB_ROUTES
from app.admin.streams import STREAM_ROUTES
from app.ai.conversation import converse
from app.ai.conversations import ConversationList, ListQuery, delete_conversation, list_conversations
from app.ai.history import History, HistoryQuery, history
from app.ai.offers import Offers, offers
from app.ai.pronunciation import PronunciationReply, pronunciation
from app.ai.reference import CANCEL, CONVERSE, DELETE_CONVERSATION, HISTORY, OFFERS, PRONOUNCE, RESUME, SPEAK
from app.ai.speech import TtsRequest, tts
from app.ai.streams import CancelQuery, cancel_stream, resume
from app.http.caller import Access
from app.http.endpoint import Endpoint
from app.http.health import HEALTH, METRICS, READINESS, healthz, metrics, readyz
from app.pages.files import FILE_ROUTES
from app.pages.reference import docs_routes
from app.pages.talk import TALK_ROUTES
from app.settings import Settings

AI_ROUTES = [
    Endpoint(
        "POST",
        "/bp/ai/conversation",
        converse,
        s2s="/bp/server/user/{user_id}/ai/conversation",
        statuses={"backend unavailable": 502},
        stream=True,
        tag="ai",
        docs=CONVERSE,
    ),
    Endpoint(
        "GET",
        "/bp/ai/conversation/query",
        history,
        s2s="/bp/server/user/{user_id}/ai/conversation/query",
        query=HistoryQuery,
        reply=History,
        statuses={"backend unavailable": 502},
        tag="ai",
        docs=HISTORY,
    ),
    Endpoint(
        "GET",
        "/bp/ai/conversations",
        list_conversations,
        s2s="/bp/server/user/{user_id}/ai/conversations",
        query=ListQuery,
        reply=ConversationList,
        tag="ai",
    ),
    Endpoint(
        "DELETE",
        "/bp/ai/conversation/{conversation_id}",
        delete_conversation,
        s2s="/bp/server/user/{user_id}/ai/conversation/{conversation_id}",
        tag="ai",
        docs=DELETE_CONVERSATION,
    ),
    Endpoint(
        "GET",
        "/bp/ai/stream/{stream_id}",
        resume,
        s2s="/bp/server/user/{user_id}/ai/stream/{stream_id}",
        tag="ai",
        docs=RESUME,
    ),
    Endpoint(
        "DELETE",
        "/bp/ai/stream/{stream_id}",
        cancel_stream,
        s2s="/bp/server/user/{user_id}/ai/stream/{stream_id}",
        query=CancelQuery,
        tag="ai",
        docs=CANCEL,
    ),
    Endpoint(
        "POST",
        "/bp/ai/audio/pronunciation",
        pronunciation,
        s2s="/bp/server/user/{user_id}/ai/audio/pronunciation",
        reply=PronunciationReply,
        statuses={"backend unavailable": 502},
        stream=True,
        tag="ai",
        docs=PRONOUNCE,
    ),
    Endpoint(
        "POST",
        "/bp/ai/audio/tts",
        tts,
        s2s="/bp/server/user/{user_id}/ai/audio/tts",
        body=TtsRequest,
        statuses={"backend unavailable": 502},
        tag="ai",
        docs=SPEAK,
    ),
    Endpoint(
        "GET",
        "/bp/ai/offers",
        offers,
        s2s="/bp/server/user/{user_id}/ai/offers",
        reply=Offers,
        tag="ai",
        docs=OFFERS,
    ),
]

METRICS_ROUTES = [
    Endpoint("GET", "/metrics", metrics, access=Access.PUBLIC, tag="operations", access_log=False, docs=METRICS),
]

OPERATIONS_ROUTES = [
    Endpoint("GET", "/healthz", healthz, access=Access.PUBLIC, tag="operations", access_log=False, docs=HEALTH),
    Endpoint("GET", "/readyz", readyz, access=Access.PUBLIC, tag="operations", access_log=False, docs=READINESS),
    *METRICS_ROUTES,
]

INTERFACE: list[Endpoint] = [
    *ACCOUNT_ROUTES,
    *AI_ROUTES,
    *CONFIG_ROUTES,
    *STREAM_ROUTES,
    *JOB_ROUTES,
    *FILE_ROUTES,
    *OPERATIONS_ROUTES,
    *TALK_ROUTES,
]

DOCS_ROUTES = docs_routes(INTERFACE)
ROUTES: list[Endpoint] = [*INTERFACE, *DOCS_ROUTES]
METRICS_PORT_ROUTES = [*OPERATIONS_ROUTES, *DOCS_ROUTES]
"""The rows of the metrics port. It has no connection limits, so it serves nothing else."""


def public_routes(settings: Settings) -> list[Endpoint]:
    """Return the rows for the public port. `/metrics` and the reference are included if the settings say so."""
    hidden: list[Endpoint] = []
    if not settings.shows_metrics:
        hidden += METRICS_ROUTES
    if not settings.shows_docs:
        hidden += DOCS_ROUTES
    return [row for row in ROUTES if row not in hidden]
