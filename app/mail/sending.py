"""The job that sends an email by the first account that accepts it."""

from datetime import UTC, datetime
from urllib.parse import urlsplit

import structlog
from structlog.typing import FilteringBoundLogger as BoundLogger

from app.services import Services
from app.settings import Settings
from storage.configs.kinds.limits import Rate
from storage.configs.kinds.mail_accounts import INBOX, MAIL_ACCOUNTS, MailAccount
from storage.configs.rows import ConfigKey
from storage.mail import mails
from storage.mail.mail import MailContent, SendMail
from storage.mail.smtputf8 import accounts_for
from streams.metrics import CounterMetric
from streams.tasks import pause
from streams.wire.errors import BackendUnavailable, ConfigInvalid, RateLimited, ServiceError, StoreError
from streams.wire.mailbox import Mailbox, mailbox_of
from vendors.account import Account
from vendors.catalog import Capability
from vendors.errors import TimedOut, VendorError
from vendors.mail.message import Mail, build
from vendors.mail.smtp import ContentRefused, RecipientDeferred, RecipientRefused, SmtpClient, SmtpOptions

log = structlog.get_logger()

_WITHIN_S = 60
_STORE_AGAIN_S = 5
_STORE_TRIES = 12
_MINUTE_S = 60
MAILS = CounterMetric("parley_mails", "Attempts to send emails by outcome", ["app", "strategy", "outcome"])
_MAILS = Capability[SmtpOptions, SmtpClient]("mail").by(SmtpClient)


async def send_mail(services: Services, job: SendMail) -> None:
    """Send an email, unless its code has expired or its address is suppressed for its strategy.

    The accounts are tried in order. If all fail, the job fails. If an account may have accepted the email, the
    others are not tried in this attempt, because the recipient could get it twice. A further attempt sends it with
    the same `Message-ID`. If an account refuses the recipient, the others are not tried either.
    """
    bound = log.bind(app_id=job.app_id, mail_id=job.mail_id, strategy=job.strategy)
    if job.expires_s is not None and services.clock.now(job.app_id).timestamp() >= job.expires_s:
        bound.warning("mail.expired")
        return
    content = job.content(services.keyring)
    if not await _may_send(services, job, to=content.to):
        bound.info("mail.not_sent")
        return
    try:
        await _send_by_first(services, job, content, log=bound)
    except RecipientRefused as error:
        bound.warning("mail.recipient_refused", error=str(error), final=True)
        await _end_attempt(services, job, "refused")
    except RecipientDeferred as error:
        bound.warning("mail.recipient_refused", error=str(error), final=False)
        await _end_attempt(services, job, "waiting")
        raise
    except ServiceError:
        await _end_attempt(services, job, "waiting")
        raise
    else:
        await _end_attempt(services, job, "sent")


async def _may_send(services: Services, job: SendMail, *, to: str) -> bool:
    if job.strategy is None:
        return True
    async with services.database.connection() as conn:
        return await mails.may_send(conn, job.mail_id, to=to)


async def _end_attempt(services: Services, job: SendMail, outcome: mails.Outcome) -> None:
    """Count the outcome of an attempt. For an email of a strategy, store it too.

    An error would repeat the job and send the email again. So the outcome is stored as soon as the database is
    available. If the database is unavailable for a minute, the email keeps its former status.
    """
    MAILS.add(1, job.app_id, job.strategy or "", outcome)
    if job.strategy is None:
        return
    now = services.clock.now(job.app_id) if outcome == "sent" else None
    for pause_s in (*[_STORE_AGAIN_S] * _STORE_TRIES, 0):
        try:
            async with services.database.connection() as conn:
                await mails.end_attempt(conn, job.mail_id, outcome=outcome, now=now)
        except StoreError as error:
            log.warning("mail.outcome_not_stored", mail_id=job.mail_id, outcome=outcome, error=error.what)
            await pause(pause_s)
        else:
            return


async def _send_by_first(services: Services, job: SendMail, content: MailContent, *, log: BoundLogger) -> None:
    """Send an email by the first account that accepts it.

    Raises the error of the last account, or at once `TimedOut`, `RecipientRefused` or `RecipientDeferred`.
    """
    accounts = accounts_for(content.to, services.configs, job.app_id, accounts=content.accounts)
    if content.accounts and not accounts:
        raise RecipientRefused("the address of the recipient needs an account with smtputf8, and none has it")
    failure: ServiceError = ConfigInvalid("email default: mail_accounts is empty")
    for name in accounts:
        try:
            await _send_by(services, job, content, name)
        except TimedOut as error:
            log.warning("mail.account_silent", account=name, error=str(error))
            raise
        except (ConfigInvalid, RateLimited, VendorError, ContentRefused) as error:
            log.warning("mail.account_failed", account=name, error=str(error))
            failure = error
        else:
            log.info("mail.sent", account=name)
            return
    raise failure


async def _send_by(services: Services, job: SendMail, content: MailContent, name: str) -> None:
    config = services.configs.required(MAIL_ACCOUNTS, job.app_id, name).value
    sender = _sender(content, name, config)
    message = build(_mail(job, content, sender), host=own_host(services.settings), at=datetime.now(UTC))
    if config.per_minute is not None:
        rate = Rate(count=config.per_minute, per_s=_MINUTE_S)
        count = await services.limiter.count(rate, app_id=job.app_id, name="mail_account", who=name)
        count.check()
    account = Account(name, MAIL_ACCOUNTS.name, _url(services, config, name), config.password, config.concurrency)
    key = ConfigKey(job.app_id, MAIL_ACCOUNTS.name, name)
    options = SmtpOptions(tls=config.tls, username=config.username, own_host=own_host(services.settings))
    server = services.vendors.open(_MAILS, account, key=key, limits=config)

    async def send(client: SmtpClient) -> BackendUnavailable | None:
        """Return the refusal of this email, because a call that gets one has succeeded: the account works."""
        try:
            await client.send(message, sender=sender.address, to=content.to)
        except (RecipientRefused, RecipientDeferred, ContentRefused) as refusal:
            return refusal
        return None

    if refusal := await server.call(options, send, within_s=_WITHIN_S):
        raise refusal


def _sender(content: MailContent, name: str, config: MailAccount) -> Mailbox:
    sender = content.sender or config.from_
    if sender is None:
        raise ConfigInvalid(f"mail_accounts {name}: from is required, because the email names no sender")
    return _mailbox(sender, field="from")


def _mailbox(text: str, *, field: str) -> Mailbox:
    """Read an address of a config. Raises `ConfigInvalid`: a stored email may have one of an earlier version."""
    try:
        return mailbox_of(text)
    except ValueError:
        raise ConfigInvalid(f"{field} of the email is not one address") from None


def _mail(job: SendMail, content: MailContent, sender: Mailbox) -> Mail:
    return Mail(
        mail_id=job.mail_id,
        sender=sender,
        to=content.to,
        subject=content.subject,
        text=content.text,
        html=content.html,
        language=content.language,
        reply_to=_mailbox(content.reply_to, field="reply_to") if content.reply_to else None,
        unsubscribe=content.unsubscribe,
        one_click=content.one_click,
    )


def own_host(settings: Settings) -> str:
    """Return the name by which this server introduces itself to mail servers."""
    return urlsplit(settings.public_url).hostname or "localhost"


def _url(services: Services, config: MailAccount, name: str) -> str:
    url = url_of(config, services.settings)
    if url is None:
        raise ConfigInvalid(f"mail_accounts {name}: host is the local inbox, which does not run")
    return url


def url_of(config: MailAccount, settings: Settings) -> str | None:
    """Return the URL of an account's mail server, or `None` if it is the local inbox, which does not run."""
    if config.host == INBOX:
        return settings.inbox_url
    host = f"[{config.host}]" if ":" in config.host else config.host
    return f"smtp://{host}:{config.port}"
