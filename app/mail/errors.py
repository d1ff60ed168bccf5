"""Errors of emails that apps send."""

from streams.wire.errors import ServiceError


class ApiEmailInvalid(ServiceError):
    """The request names a recipient, which the strategy does not allow (`enable_api_email`)."""

    error_type = "mail_hub.api_email_invalid"
    status = 400


class EmailToInvalid(ServiceError):
    """`email_to` is not an email address, or it is missing and the user has no address."""

    error_type = "mail_hub.email_to_invalid"
    status = 400
