"""Email addresses, in the form in which they are compared and to which emails are sent."""

import re

from email_validator import EmailNotValidError, validate_email

from streams.wire.typed import typed_address

MAX_CHARACTERS = 320


def normalized(address: str, *, development: bool) -> str | None:
    """Return the form of an address that is compared and that gets emails, or `None` if it is not an address.

    Emails are sent only to this form. Otherwise, somebody could get emails for an address that merely looks alike.
    """
    try:
        valid = validate_email(
            typed_address(address),
            check_deliverability=False,
            test_environment=development,
            allow_empty_local=False,
        )
    except EmailNotValidError:
        return None
    domain = valid.ascii_domain or valid.domain
    return f"{valid.local_part.lower()}@{domain.lower()}"


_DOTS = re.compile(r"\.+")


def fault_of(address: str, *, development: bool) -> str:
    """Return what is wrong with an address of which `normalized` makes none, for an error message.

    Some carriers have issued addresses with dots that no standard allows (RFC 5321, section 4.1.2).
    """
    local, at, domain = address.strip().rpartition("@")
    mended = _DOTS.sub(".", local).strip(".")
    if mended != local and normalized(f"{mended}{at}{domain}", development=development):
        return (
            "must not have two dots in a row, or a dot at the beginning or before the @: many mail servers refuse "
            "such addresses"
        )
    return "must be an email address"


def without_tag(address: str) -> str:
    """Return a normalized address without what follows a plus, for counting: both have the same reader."""
    local, at, domain = address.rpartition("@")
    return f"{local.partition('+')[0] or local}{at}{domain}"
