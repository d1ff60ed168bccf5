"""Emails to the user, by the strategies of the app."""

from collections.abc import Mapping
from typing import Any

from parley_client.calls import Calls


class Mail:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def send(
        self, name: str, *, email_to: str | None = None, custom_variables: Mapping[str, Any] | None = None
    ) -> None:
        """Send the user an email by the strategy `name`."""
        body = {"name": name, "email_to": email_to, "custom_variables": custom_variables}
        await self._calls.once("/bp/user/me/mail_hub/send", body)
