"""The job that sends an email by the first account that accepts it."""

from datetime import UTC, datetime
from email.message import EmailMessage
from urllib.parse import urlsplit

import structlog

from app.services import Services
from storage.config_rows import ConfigKey
from storage.kinds.limits import Rate
from storage.kinds.mail_accounts import INBOX, MAIL_ACCOUNTS, MailAccount
from storage.mail import MailContent, SendMail
from streams.wire.errors import ConfigInvalid, RateLimited, ServiceError
from vendors.account import Account
from vendors.catalog import Capability
from vendors.errors import VendorError
from vendors.mail.message import Mail, build
from vendors.mail.smtp import RecipientRefused, SmtpClient, SmtpOptions

log = structlog.get_logger()

_WITHIN_S = 30
_MINUTE_S = 60
_MAILS = Capability[SmtpOptions, SmtpClient]("mail").by(SmtpClient)


async def send_mail(services: Services, job: SendMail) -> None:
    """Send an email, unless its code has expired. The accounts are tried in order; if all fail, the job fails.

    An email may arrive twice: an account whose server has not answered may have sent it.
    """
    bound = log.bind(app_id=job.app_id, mail_id=job.mail_id)
    if job.expires_s is not None and services.clock.now(job.app_id).timestamp() >= job.expires_s:
        bound.warning("mail.expired")
        return
    content = job.content(services.keyring)
    failure: ServiceError = ConfigInvalid("email default: mail_accounts is empty")
    for name in content.accounts:
        try:
            await _send_by(services, job, content, name)
        except RecipientRefused as error:
            bound.warning("mail.undeliverable", account=name, error=str(error))
            return
        except (ConfigInvalid, RateLimited, VendorError) as error:
            bound.warning("mail.account_failed", account=name, error=str(error))
            failure = error
        else:
            bound.info("mail.sent", account=name)
            return
    raise failure


async def _send_by(services: Services, job: SendMail, content: MailContent, name: str) -> None:
    config = services.configs.required(MAIL_ACCOUNTS, job.app_id, name).value
    message = _message(services, job, content, name, config)
    if config.per_minute is not None:
        rate = Rate(count=config.per_minute, per_s=_MINUTE_S)
        count = await services.limiter.count(rate, app_id=job.app_id, name="mail_account", who=name)
        count.check()
    account = Account(name, MAIL_ACCOUNTS.name, _url(services, config, name), config.password, config.concurrency)
    key = ConfigKey(job.app_id, MAIL_ACCOUNTS.name, name)
    options = SmtpOptions(tls=config.tls, username=config.username, own_host=_own_host(services))
    server = services.vendors.open(_MAILS, account, key=key, limits=config)
    await server.call(options, lambda client: client.send(message), within_s=_WITHIN_S)


def _message(
    services: Services, job: SendMail, content: MailContent, name: str, config: MailAccount
) -> EmailMessage:
    sender = content.sender or config.from_
    if sender is None:
        raise ConfigInvalid(f"mail_accounts {name}: from is required, because the email names no sender")
    mail = Mail(
        mail_id=job.mail_id,
        sender=sender,
        to=content.to,
        subject=content.subject,
        text=content.text,
        html=content.html,
        language=content.language,
    )
    return build(mail, host=_own_host(services), at=datetime.now(UTC))


def _own_host(services: Services) -> str:
    return urlsplit(services.settings.public_url).hostname or "localhost"


def _url(services: Services, config: MailAccount, name: str) -> str:
    if config.host != INBOX:
        host = f"[{config.host}]" if ":" in config.host else config.host
        return f"smtp://{host}:{config.port}"
    url = services.settings.inbox_url
    if url is None:
        raise ConfigInvalid(f"mail_accounts {name}: host is the local inbox, which does not run")
    return url
