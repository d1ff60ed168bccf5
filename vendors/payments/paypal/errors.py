"""PayPal's error responses, with the issue by which callers decide what to do."""

from urllib.parse import urlsplit

from pydantic import Field, ValidationError

from streams.wire.codec import loads
from vendors.errors import Refused
from vendors.objects import Readable
from vendors.payments.paypal.fields import Link, Links, PayPalObject

_IN_PROGRESS = frozenset({"PREVIOUS_REQUEST_IN_PROGRESS", "RESOURCE_CONFLICT", "ORDER_COMPLETION_IN_PROGRESS"})
"""The same call may succeed later, with the same key."""


class _Detail(PayPalObject):
    issue: str = ""
    description: str = ""
    field: str = ""
    link: Links = Field(default_factory=list)
    """Older interfaces have links here."""


class _Body(PayPalObject):
    name: str = ""
    message: str = ""
    debug_id: str = ""
    error: str = ""
    """The code in errors of the token endpoint, which have no name."""
    error_description: str = ""
    details: list[Readable[_Detail]] = Field(default_factory=list)
    links: Links = Field(default_factory=list)


class PayPalRefused(Refused):
    """PayPal has answered with an error."""

    issue = ""
    """What is wrong, such as `ORDER_NOT_APPROVED`. If the error has no details, its name."""
    name = ""
    """The class of the error, such as `UNPROCESSABLE_ENTITY`."""
    field = ""
    """The field at fault, such as `/purchase_units/0/amount`, or `SENDER_BATCH_ID` in older interfaces."""
    links: tuple[Link, ...] = ()

    @property
    def not_found(self) -> bool:
        """Whether PayPal has no object with this id, or has deleted it."""
        return self.vendor_status == 404

    @property
    def lacks_object(self) -> bool:
        """Whether PayPal says so itself, and not a server in its place, such as one at a wrong address."""
        return self.not_found and self.name == "RESOURCE_NOT_FOUND"

    def linked_id(self, collection: str) -> str | None:
        """Return the id of the first link to an object under the path `collection`."""
        for link in self.links:
            path, _, object_id = urlsplit(link.href).path.rpartition("/")
            if path.endswith(collection) and object_id:
                return object_id
        return None


def refused(error: Refused) -> PayPalRefused:
    """Return an error response with what its body says. Its values, which may be personal data, are left out."""
    body = _body(error.body)
    detail = body.details[0] if body.details else _Detail()
    issue = " ".join((detail.issue or body.name or body.error).split())[:100]
    problem = f"answered {error.vendor_status}" + (f": {issue}" if issue else "")
    found = PayPalRefused(
        error.vendor,
        problem,
        retryable=error.retryable or not _IN_PROGRESS.isdisjoint((issue, body.name)),
        retry_after_s=error.retry_after_s,
        vendor_status=error.vendor_status,
        extra={"code": issue, "debug_id": body.debug_id[:64]} if issue else None,
    )
    found.body, found.issue, found.name, found.field = error.body, issue, body.name, detail.field
    found.links = (*body.links, *(link for detail in body.details for link in detail.link))
    return found


def _body(raw: bytes) -> _Body:
    try:
        return _Body.model_validate(loads(raw))
    except (ValueError, ValidationError):
        return _Body()
