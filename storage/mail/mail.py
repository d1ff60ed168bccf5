"""The job that sends an email. It is stored in the transaction of the change that the email reports."""

from typing import ClassVar, Self

from pydantic import Field

from storage.configs.kinds.base import DAY_S
from storage.jobs.jobs import Job
from storage.mail.recipients import recipient_of
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
    """The header `From`. `None`: the sender of the account."""
    reply_to: str | None = None
    unsubscribe: list[str] = Field(default_factory=list)
    """URLs of the header `List-Unsubscribe`."""
    one_click: bool = False
    """Whether a POST request to the last of these URLs unsubscribes (RFC 8058)."""
    accounts: list[str]
    """The configs of kind `mail_accounts` that may send it, tried in this order."""


class SendMail(Job):
    """Send an email. The last attempt is made a day after the first one."""

    task: ClassVar[str] = "send_mail"
    attempts: ClassVar[int] = 10
    retry_after_s: ClassVar[float] = 20
    last_after_s: ClassVar[float | None] = DAY_S
    app_id: str
    uid: str | None
    """The user whom the email is about; `None` if only its address is known."""
    recipient: str
    """A keyed hash of the address."""
    mail_id: str
    sealed: str
    """The encrypted content, because operators can read jobs."""
    strategy: str | None = None
    """The strategy that sends the email, which then has a row in `mails`. `None`: the email is about an account."""
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
        mail_id: str | None = None,
        strategy: str | None = None,
        expires_s: float | None = None,
    ) -> Self:
        mail_id, recipient = mail_id or new_id(), recipient_of(content.to, app_id, keyring=keyring)
        sealed = keyring.encrypt_value(content.model_dump(), aad=_aad(app_id, mail_id))
        return cls(
            app_id=app_id,
            uid=uid,
            recipient=recipient,
            mail_id=mail_id,
            sealed=sealed,
            strategy=strategy,
            expires_s=expires_s,
        )

    def content(self, keyring: Keyring) -> MailContent:
        """Decrypt the content. Raises `DecryptionFailed`."""
        return MailContent.of(keyring.decrypt_value(self.sealed, aad=_aad(self.app_id, self.mail_id)))


def _aad(app_id: str, mail_id: str) -> str:
    return f"jobs/send_mail/{app_id}/{mail_id}"
