"""Links in emails: they lead to this server, at its public URL (§4.7)."""

from typing import Annotated

import structlog
from pydantic import AfterValidator

from app.services import Services
from streams.wire.errors import ConfigInvalid
from streams.wire.typed import plus_for_blank

log = structlog.get_logger()


def public_link(services: Services, path_and_query: str) -> str:
    """Return a link to this server. Raises `ConfigInvalid` if the operator has not set the public URL.

    The address that the server listens on would lead readers of emails nowhere.
    """
    settings = services.settings
    if not settings.has_public_url:
        error = "PARLEY_PUBLIC_URL is not set: set it to the URL at which users reach this server"
        log.error("mail.link_refused", error=error)
        raise ConfigInvalid("PARLEY_PUBLIC_URL is not set, so no email can have a link")
    return f"{settings.public_url}{path_and_query}"


LinkAddress = Annotated[str, AfterValidator(plus_for_blank)]
"""An email address in the query of a link."""
