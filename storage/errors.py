"""Errors about what a request names or changes in the stores (§7)."""

from streams.wire.errors import Conflict, InvalidOperation, ItemNotFound, Unavailable, listed


class ConversationNotFound(ItemNotFound):
    """No conversation of the user has this `conversation_id`."""

    def __init__(self, conversation_id: str) -> None:
        super().__init__(f"conversation {listed([conversation_id])} does not exist")


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
    """No stored webhook has this `webhook_id`."""

    def __init__(self, webhook_id: str) -> None:
        super().__init__(f"webhook {listed([webhook_id])} does not exist")


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
        super().__init__(f"revision {revision} of {kind} {listed([name])} does not exist")


class RevisionNotActive(InvalidOperation):
    """`If-Match` is not the active revision of the config."""

    status = 412

    def __init__(self) -> None:
        super().__init__("If-Match is not the active revision")


class ConfigExists(InvalidOperation):
    """`If-None-Match` is `*`, and the config exists."""

    status = 412

    def __init__(self) -> None:
        super().__init__("If-None-Match does not allow to replace a config")
