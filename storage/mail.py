"""The job that sends an email. It is stored in the transaction of what the email reports."""

from typing import ClassVar, Self

from storage.jobs import Job
from storage.recipients import recipient_of
from storage.secrets import Keyring
from streams.wire.ids import new_id
from streams.wire.model import Model


class MailContent(Model):
    to: str
    """A normalized address."""
    subject: str
    text: str
    html: str = ""
    language: str = ""
    sender: str | None = None
    """The header `From`. `None`: that of the account."""
    accounts: list[str]
    """The configs of kind `mail_accounts` that send it, tried in this order."""


class SendMail(Job):
    """Send an email. Retried for about ten minutes."""

    task: ClassVar[str] = "send_mail"
    attempts: ClassVar[int] = 8
    retry_after_s: ClassVar[float] = 5
    timeout_s: ClassVar[float] = 120
    app_id: str
    uid: str | None
    """The user whom the email is about; `None` if only its address is known."""
    recipient: str
    """A keyed hash of the address."""
    mail_id: str
    sealed: str
    """The encrypted content, because operators can read jobs."""
    expires_s: float | None = None
    """When its code or link expires, in seconds since the Unix epoch by the app's clock. It is not sent later."""

    @classmethod
    def seal(
        cls,
        app_id: str,
        content: MailContent,
        *,
        keyring: Keyring,
        uid: str | None = None,
        expires_s: float | None = None,
    ) -> Self:
        mail_id, recipient = new_id(), recipient_of(content.to, app_id, keyring=keyring)
        sealed = keyring.encrypt_value(content.model_dump(), aad=_aad(app_id, mail_id))
        return cls(app_id=app_id, uid=uid, recipient=recipient, mail_id=mail_id, sealed=sealed, expires_s=expires_s)

    def content(self, keyring: Keyring) -> MailContent:
        """Decrypt the content. Raises `DecryptionFailed`."""
        return MailContent.of(keyring.decrypt_value(self.sealed, aad=_aad(self.app_id, self.mail_id)))


def _aad(app_id: str, mail_id: str) -> str:
    return f"jobs/send_mail/{app_id}/{mail_id}"
