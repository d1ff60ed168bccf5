"""The job that sends a link for a new password, if a user has the address."""

from typing import Any, ClassVar, Self

from storage.jobs.jobs import Job
from storage.mail.recipients import recipient_of
from storage.secrets import Keyring
from streams.wire.ids import new_id
from streams.wire.model import Model


class ResetRequest(Model):
    address: str
    """A normalized address."""
    language: str
    """The `Accept-Language` of the request."""
    requested: str = ""
    """When and from where it was requested, in the language of the email."""
    custom_variables: dict[str, Any]


class SendReset(Job):
    """Send a link for a new password, if a user has the address."""

    task: ClassVar[str] = "send_reset"
    timeout_s: ClassVar[float] = 30
    app_id: str
    recipient: str
    """A keyed hash of the address."""
    request_id: str
    sealed: str
    """The encrypted request, because operators can read jobs."""
    expires_s: float
    """When the request expires, in seconds since the Unix epoch by the app's clock. No link is sent after that."""

    @classmethod
    def seal(cls, app_id: str, request: ResetRequest, *, keyring: Keyring, expires_s: float) -> Self:
        request_id, recipient = new_id(), recipient_of(request.address, app_id, keyring=keyring)
        sealed = keyring.encrypt_value(request.model_dump(), aad=_aad(app_id, request_id))
        return cls(app_id=app_id, recipient=recipient, request_id=request_id, sealed=sealed, expires_s=expires_s)

    def request(self, keyring: Keyring) -> ResetRequest:
        """Decrypt the request. Raises `DecryptionFailed`."""
        return ResetRequest.of(keyring.decrypt_value(self.sealed, aad=_aad(self.app_id, self.request_id)))


def _aad(app_id: str, request_id: str) -> str:
    return f"jobs/send_reset/{app_id}/{request_id}"
