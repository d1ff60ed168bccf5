"""Checks configs in requests before an endpoint tries or previews them. They need not be stored."""

from typing import Any

from app.admin.apps import require_app
from app.http.rows.endpoint import Call
from storage.configs.rows import ConfigKey
from storage.configs.rules import Accepted
from streams.wire.errors import InvalidParameter


async def check_draft(call: Call, key: ConfigKey, value: dict[str, Any]) -> Any:
    """Validate the `value` of a request like a config to be written, and return it with its stored secrets.

    Raises `UnknownApp` or `InvalidParameter`.
    """
    require_app(call, key.app_id)
    judged = await call.services.configs.judge(key, value)
    if not isinstance(judged, Accepted):
        raise InvalidParameter(f"value.{judged[0].path} {judged[0].message}")
    return judged.value
