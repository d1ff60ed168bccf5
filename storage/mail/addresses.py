"""Email addresses, in the form in which they are compared and to which emails are sent."""

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
