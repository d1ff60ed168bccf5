"""The job that sends a code to a phone number."""

from typing import ClassVar, Self

from storage.jobs.jobs import Job
from storage.mail.recipients import recipient_of
from storage.secrets import Keyring
from streams.wire.ids import new_id
from streams.wire.model import Model


class SmsContent(Model):
    to: str
    """A phone number in E.164."""
    code: str


class SendSms(Job):
    """Send a code to a phone number. The attempts last for about half a minute."""

    task: ClassVar[str] = "send_sms"
    attempts: ClassVar[int] = 4
    retry_after_s: ClassVar[float] = 4
    timeout_s: ClassVar[float] = 30
    app_id: str
    recipient: str
    """A keyed hash of the phone number."""
    sms_id: str
    sealed: str
    """The encrypted content, because operators can read jobs."""
    expires_s: float
    """When the code expires, in seconds since the Unix epoch by the app's clock. It is not sent after that."""

    @classmethod
    def seal(cls, app_id: str, content: SmsContent, *, keyring: Keyring, expires_s: float) -> Self:
        sms_id, recipient = new_id(), recipient_of(content.to, app_id, keyring=keyring)
        sealed = keyring.encrypt_value(content.model_dump(), aad=_aad(app_id, sms_id))
        return cls(app_id=app_id, recipient=recipient, sms_id=sms_id, sealed=sealed, expires_s=expires_s)

    def content(self, keyring: Keyring) -> SmsContent:
        """Decrypt the content. Raises `DecryptionFailed`."""
        return SmsContent.of(keyring.decrypt_value(self.sealed, aad=_aad(self.app_id, self.sms_id)))


def _aad(app_id: str, sms_id: str) -> str:
    return f"jobs/send_sms/{app_id}/{sms_id}"
