"""Errors in the form of OpenAI's API."""

from typing import Any, TypeVar

from pydantic import ValidationError

from streams.wire.codec import loads_request
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model, faults

Body = TypeVar("Body", bound=Model)


class Fault(Exception):
    """An error response with its HTTP status. `param` is the request field that caused it."""

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
    """Return the error for a missing engine. `reason` is that of `/health`."""
    message = f"{name} cannot be used: {reason}"
    if reason.startswith("install "):
        message = f"{name} is not installed: pip install 'parley[local]'"
    return Fault(501, message, error_type="engine_missing", param="model", code="engine_missing")


def engine_busy(name: str) -> Fault:
    return Fault(
        429,
        f"{name} has too many waiting requests",
        error_type="requests",
        code="rate_limit_exceeded",
        retry_after_s=1,
    )


def server_error() -> Fault:
    return Fault(500, "The server had an error while processing the request", error_type="server_error")


def read_body(model: type[Body], raw: bytes) -> Body:
    """Parse the body of a request. Raise a `Fault` that names the first invalid field."""
    try:
        return model.model_validate(loads_request(raw))
    except InvalidParameter as error:
        raise Fault(400, error.what) from None
    except ValidationError as error:
        path, problem = next(faults(error))
        raise Fault(400, f"{path or 'body'} {problem}", param=path or None) from None
