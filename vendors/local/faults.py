"""What a caller is told when something is wrong, in the form of OpenAI's errors."""

from typing import Any, TypeVar

from pydantic import ValidationError

from streams.wire.codec import loads_request
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model, faults

Body = TypeVar("Body", bound=Model)


class Fault(Exception):
    """A refusal with its HTTP status; `param` is the field of the request that it is about."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        error_type: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.error_type = error_type
        self.param = param
        self.code = code
        self.retry_after_s = retry_after_s

    def body(self) -> dict[str, Any]:
        return {
            "error": {
                "message": self.message,
                "type": self.error_type,
                "param": self.param,
                "code": self.code,
            }
        }


def model_not_found(model: str) -> Fault:
    return Fault(404, f"The model `{model}` does not exist", param="model", code="model_not_found")


def engine_missing(name: str, reason: str) -> Fault:
    """`reason` as `/health` tells it."""
    message = f"{name} cannot be used: {reason}"
    if reason.startswith("install "):
        message = f"{name} is not installed: pip install 'parley[local]'"
    return Fault(501, message, error_type="engine_missing", param="model", code="engine_missing")


def engine_busy(name: str) -> Fault:
    return Fault(
        429,
        f"{name} has as many requests waiting as it takes",
        error_type="requests",
        code="rate_limit_exceeded",
        retry_after_s=1,
    )


def server_error() -> Fault:
    return Fault(500, "The server had an error while processing the request", error_type="server_error")


def read_body(model: type[Body], raw: bytes) -> Body:
    """The typed body of a request, or a `Fault` that names the first wrong field."""
    try:
        return model.model_validate(loads_request(raw))
    except InvalidParameter as error:
        raise Fault(400, error.what) from None
    except ValidationError as error:
        path, what = next(faults(error))
        raise Fault(400, f"{path or 'body'} {what}", param=path or None) from None
