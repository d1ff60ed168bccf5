"""Routes of conversations, speech and images (§4.17 to 4.20)."""

from dataclasses import replace

from actors.clients.strategies import StrategyNotFound
from actors.plays.pronunciation import AllAccountsFailed
from actors.runtime.context import StreamStopped
from app.ai.conversations import delete_conversation, list_conversations
from app.ai.converse import converse
from app.ai.history import RecordNotFound, history
from app.ai.images.images import INPAINT_BYTES, imagine, read_task
from app.ai.offers import NoPlayground, offers
from app.ai.pronunciation import pronunciation
from app.ai.reference import CANCEL, CONVERSE, DELETE_CONVERSATION, IMAGINE, PRONOUNCE, RESUME, SPEAK
from app.ai.speech import tts
from app.ai.streams import StreamNotFound, cancel_stream, resume
from app.http.callers.area import Area, Section
from app.http.callers.limits import Limit
from app.http.rows.endpoint import Endpoint
from storage.assets.quotas import QuotaUsed
from storage.errors import ConversationNotFound, KeyReused, StreamsMissing, TurnRunning
from storage.objects.contract import ObjectsError, ObjectsUnavailable
from storage.tasks.image_tasks import ImageTaskNotFound
from streams.log import Gone
from streams.wire.errors import BackendUnavailable, ConfigInvalid, RateLimited, Unavailable

AI = Area(
    "ai",
    "Conversations",
    "Turns of conversations as streams, and the history of conversations.",
    sections=(
        Section("speech", "Speech", "Text to speech as a stream.", ("/bp/ai/audio/tts",)),
        Section(
            "pronunciation", "Pronunciation", "How well a text was read aloud.", ("/bp/ai/audio/pronunciation",)
        ),
    ),
    s2s=True,
    scope="ai",
    statuses={BackendUnavailable: 502},
)

IMAGES = replace(
    AI, group="images", title="Images", description="Images that are generated for users.", sections=()
)

_ADMISSION_ERRORS = (KeyReused, RateLimited, Unavailable, StreamsMissing, Gone)
"""The errors of endpoints that start a stream, or resend the stream of an earlier request."""

AI_ROUTES = [
    Endpoint(
        "POST",
        "/bp/ai/conversation",
        converse,
        AI,
        errors=(ConversationNotFound, StrategyNotFound, TurnRunning, *_ADMISSION_ERRORS),
        docs=CONVERSE,
    ),
    Endpoint("GET", "/bp/ai/conversation/query", history, AI, errors=(ConversationNotFound, RecordNotFound)),
    Endpoint("GET", "/bp/ai/conversations", list_conversations, AI),
    Endpoint(
        "DELETE",
        "/bp/ai/conversation/{conversation_id}",
        delete_conversation,
        AI,
        errors=(ConversationNotFound, TurnRunning),
        docs=DELETE_CONVERSATION,
    ),
    Endpoint(
        "GET",
        "/bp/ai/stream/{stream_id}",
        resume,
        AI,
        errors=(StreamNotFound, Gone, RateLimited, Unavailable, StreamsMissing),
        docs=RESUME,
    ),
    Endpoint(
        "DELETE",
        "/bp/ai/stream/{stream_id}",
        cancel_stream,
        AI,
        errors=(StreamNotFound, Unavailable, StreamsMissing),
        docs=CANCEL,
    ),
    Endpoint("POST", "/bp/ai/audio/tts", tts, AI, errors=(StrategyNotFound, *_ADMISSION_ERRORS), docs=SPEAK),
    Endpoint(
        "POST",
        "/bp/ai/audio/pronunciation",
        pronunciation,
        AI,
        errors=(StrategyNotFound, RateLimited, Unavailable, AllAccountsFailed, BackendUnavailable, StreamStopped),
        docs=PRONOUNCE,
    ),
    Endpoint("GET", "/bp/ai/offers", offers, AI, errors=(NoPlayground,)),
]

IMAGE_ROUTES = [
    Endpoint(
        "POST",
        "/bp/ai/imagine",
        imagine,
        IMAGES,
        limit=Limit("image"),
        body_bytes=INPAINT_BYTES,
        errors=(
            ImageTaskNotFound,
            StrategyNotFound,
            ConfigInvalid,
            RateLimited,
            QuotaUsed,
            BackendUnavailable,
            ObjectsError,
            ObjectsUnavailable,
        ),
        docs=IMAGINE,
    ),
    Endpoint("GET", "/bp/ai/imagine/{task_id}", read_task, IMAGES, errors=(ImageTaskNotFound,)),
]
