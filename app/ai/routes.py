"""Routes of conversations and speech (§4.17, 4.18, 4.19)."""

from app.ai.conversation import converse
from app.ai.conversations import delete_conversation, list_conversations
from app.ai.history import history
from app.ai.offers import offers
from app.ai.pronunciation import pronunciation
from app.ai.reference import CANCEL, CONVERSE, DELETE_CONVERSATION, HISTORY, OFFERS, PRONOUNCE, RESUME, SPEAK
from app.ai.speech import tts
from app.ai.streams import cancel_stream, resume
from app.http.area import Area
from app.http.endpoint import Endpoint

AI = Area(
    "ai",
    "Conversations and speech",
    "Conversations and speech as streams, and the history of conversations.",
    s2s=True,
    scope="ai",
    statuses={"backend unavailable": 502},
)

AI_ROUTES = [
    Endpoint("POST", "/bp/ai/conversation", converse, AI, docs=CONVERSE),
    Endpoint("GET", "/bp/ai/conversation/query", history, AI, docs=HISTORY),
    Endpoint("GET", "/bp/ai/conversations", list_conversations, AI),
    Endpoint("DELETE", "/bp/ai/conversation/{conversation_id}", delete_conversation, AI, docs=DELETE_CONVERSATION),
    Endpoint("GET", "/bp/ai/stream/{stream_id}", resume, AI, docs=RESUME),
    Endpoint("DELETE", "/bp/ai/stream/{stream_id}", cancel_stream, AI, docs=CANCEL),
    Endpoint("POST", "/bp/ai/audio/pronunciation", pronunciation, AI, docs=PRONOUNCE),
    Endpoint("POST", "/bp/ai/audio/tts", tts, AI, docs=SPEAK),
    Endpoint("GET", "/bp/ai/offers", offers, AI, docs=OFFERS),
]
