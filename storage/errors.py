"""Errors about what a request names or changes in the stores (§7)."""

from streams.wire.errors import Conflict, InvalidOperation, ItemNotFound, Unavailable, listed


class ConversationNotFound(ItemNotFound):
    """`conversation_id` names no conversation of the user."""

    def __init__(self, conversation_id: str) -> None:
        super().__init__(f"conversation_id names no conversation of this user: {listed([conversation_id])}")


class TurnRunning(Conflict):
    """Another turn of the conversation is running."""

    def __init__(self, what: str = "another turn of this conversation is running") -> None:
        super().__init__(what)


class KeyReused(Conflict):
    """`Idempotency-Key` was used for another request."""

    def __init__(self) -> None:
        super().__init__("Idempotency-Key was used for another request")


class StreamsMissing(Unavailable):
    """Valkey was not available or has lost its data. Some streams are not registered in it again yet."""

    def __init__(self) -> None:
        super().__init__("Valkey was not available or lost its data; the stream may not be registered again yet")


class RequestRunning(Conflict):
    """A request with the same `Idempotency-Key` is still running."""

    retry_after_s = 2

    def __init__(self) -> None:
        super().__init__("a request with this Idempotency-Key is still running")


class AnswerNotKept(Conflict):
    """The request with this `Idempotency-Key` has succeeded, but its response was not kept."""

    def __init__(self) -> None:
        super().__init__("the request with this Idempotency-Key has succeeded, but its response was not kept")


class WebhookNotFound(ItemNotFound):
    """`webhook_id` names no stored webhook."""

    def __init__(self, webhook_id: str) -> None:
        super().__init__(f"webhook_id names no stored webhook: {listed([webhook_id])}")


class UnknownApp(ItemNotFound):
    """The app that is asked about does not exist."""

    def __init__(self, app_id: str) -> None:
        super().__init__(f"app {listed([app_id])} does not exist")


class ConfigKindNotFound(ItemNotFound):
    """There is no such kind of config."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"kind {listed([kind])} does not exist")


class ConfigNotFound(ItemNotFound):
    """The config does not exist."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind} {listed([name])} does not exist")


class RevisionNotFound(ItemNotFound):
    """The config has no such revision."""

    def __init__(self, kind: str, name: str, *, revision: int) -> None:
        super().__init__(f"{kind} {listed([name])} has no revision {revision}")


class RevisionNotActive(InvalidOperation):
    """`If-Match` is not the active revision of the config."""

    status = 412

    def __init__(self) -> None:
        super().__init__("If-Match is not the active revision")
