"""The examples of the API reference as files."""

from functools import cache
from typing import Any

from app.http.openapi.document import openapi
from app.routes import ROUTES

URL = "http://127.0.0.1:8080"


@cache
def samples(lang: str) -> dict[str, str]:
    """Return the examples in one language, by their operation."""
    document = openapi(ROUTES, public_url=URL)
    return {
        f"{method.upper()} {path}": sample["source"]
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        for sample in _of(operation)
        if sample["lang"] == lang
    }


def _of(operation: dict[str, Any]) -> list[dict[str, str]]:
    return operation["x-codeSamples"]
