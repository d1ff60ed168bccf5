"""Sends emails to users by the strategies of their app (§4.15)."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from app.http.callers.limits import Limit, count_together, report_together
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body
from app.http.rows.replies import Empty
from app.http.rows.transactions import Transaction
from app.mail.errors import ApiEmailInvalid, EmailToInvalid
from app.mail.links import Subscription, pixel_url, unsubscribe_url
from app.mail.variables import CustomVariables
from app.mail_templates import allowed_variables, content_of, names_in, rendered
from app.mail_urls import shown_address
from storage.accounts import emails
from storage.configs.kinds.apps import APPS
from storage.configs.kinds.mail import MAIL, MailStrategy
from storage.configs.kinds.mail_accounts import MAIL_ACCOUNTS
from storage.limits import Bucket
from storage.mail import mails
from storage.mail.addresses import MAX_CHARACTERS, fault_of, normalized, without_tag
from storage.mail.mail import SendMail
from storage.mail.recipients import recipient_of
from storage.mail.smtputf8 import NOT_ASCII, accounts_for
from streams.wire.errors import ConfigInvalid, ServiceError
from streams.wire.ids import new_id, sha256_hex
from streams.wire.model import Model

_TAG = "mails"
LIMIT = Limit("mail_user", together=_TAG)
_PIXEL = "TrackingPixelURL"
_UNSUBSCRIBE = "UnsubscribeURL"


class NewMail(Model):
    name: str
    """Name of a strategy, a config of kind `mail`."""
    email_to: str | None = None
    """The recipient, if the strategy allows this (`enable_api_email`). Absent or empty: the address of the user."""
    custom_variables: CustomVariables | None = None
    """Values for `{{.CustomVariables.key}}` of the templates: at most 64, each of at most 4 KiB. Variables that the
    strategy does not name are ignored."""


async def send(call: Call, transaction: Transaction, body: Body[NewMail]) -> Empty:
    """Send an email to the user by a strategy of the app.

    A job sends it later, and retries for a day if the mail servers do not accept the email. The rates `mail_user`
    and `mail_recipient` limit clients, but not app servers.
    """
    try:
        strategy = call.services.configs.required(MAIL, call.app_id, body.name).value
        variables = _variables(call, body, strategy)
        to = await _recipient(call, body.email_to, accounts=strategy.mail_accounts)
        job = _job(call, body.name, strategy, variables=variables, to=to)
    except ServiceError:
        await report_together(call.services, call.app_limits, call.request, call.caller, rate=LIMIT.rate, tag=_TAG)
        raise
    async with _counted(call, to), transaction.begin() as conn:
        now = call.services.clock.now(call.app_id)
        await mails.add(conn, job, tracked=strategy.track, now=now)
        return transaction.answer(Empty())


def _variables(call: Call, body: NewMail, strategy: MailStrategy) -> dict[str, Any]:
    """Return the variables that the strategy names. Raises the errors of a request that it does not allow."""
    _check_accounts(call, body.name, strategy)
    if body.email_to and not strategy.enable_api_email:
        raise ApiEmailInvalid(f"email_to must be empty for {body.name}: enable_api_email is false")
    return allowed_variables(body.custom_variables or {}, strategy.variables, url_hosts=strategy.url_hosts)


def _check_accounts(call: Call, name: str, strategy: MailStrategy) -> None:
    """Raise `ConfigInvalid` if no account can send the email."""
    configs, fault = call.services.configs, ConfigInvalid(f"mail {name}: mail_accounts is empty")
    for account in strategy.mail_accounts:
        try:
            config = configs.required(MAIL_ACCOUNTS, call.app_id, account).value
        except ConfigInvalid as error:
            fault = error
        else:
            if strategy.from_ is not None or config.from_ is not None:
                return
            fault = ConfigInvalid(f"mail_accounts {account}: from is required, because mail {name} has none")
    raise fault


async def _recipient(call: Call, given: str | None, *, accounts: Sequence[str]) -> str:
    """Return the address that gets the email. Raises `EmailToInvalid` if there is none to which `accounts` send."""
    to = _address(call, given) if given else await _own_address(call)
    if not accounts_for(to, call.services.configs, call.app_id, accounts=accounts):
        raise EmailToInvalid(f"{'email_to' if given else 'the email address of the user'} {NOT_ASCII}")
    return to


def _address(call: Call, given: str) -> str:
    development = call.services.settings.development
    to = normalized(given, development=development) if len(given) <= MAX_CHARACTERS else None
    if to is None:
        raise EmailToInvalid(f"email_to {fault_of(given, development=development)}")
    return to


async def _own_address(call: Call) -> str:
    async with call.services.database.connection() as conn:
        addresses = await emails.find(conn, call.app_id, call.caller.user)
    if not addresses.current:
        raise EmailToInvalid("email_to is required, because the user has no email address")
    return addresses.current


def _job(call: Call, name: str, strategy: MailStrategy, *, variables: dict[str, Any], to: str) -> SendMail:
    services, uid, mail_id, shown = call.services, call.caller.user, new_id(), names_in(strategy)
    links, pixel, unsubscribe = [], "", ""
    own = strategy.list_unsubscribe
    if own is not None:
        links.append(own)
    is_ours = own is None or own.startswith("mailto:")
    if is_ours or _UNSUBSCRIBE in shown:
        unsubscribe = unsubscribe_url(services, Subscription(call.app_id, to, name))
    if is_ours:
        links.append(unsubscribe)
    one_click = is_ours or strategy.list_unsubscribe_post
    if strategy.track and shown & {_PIXEL, f"CustomVariables.{_PIXEL}"}:
        pixel = pixel_url(services, uid, mail_id=mail_id, to=to)
    app = services.configs.singleton(APPS, call.app_id).title or call.app_id
    values = {
        "App": app,
        "Email": shown_address(to),
        _PIXEL: pixel,
        _UNSUBSCRIBE: unsubscribe,
        "CustomVariables": {**variables, _PIXEL: pixel},
    }
    email = rendered(strategy, values)
    content = content_of(strategy, email, to=to, unsubscribe=links, one_click=one_click)
    return SendMail.seal(call.app_id, content, keyring=services.keyring, uid=uid, mail_id=mail_id, strategy=name)


@asynccontextmanager
async def _counted(call: Call, to: str) -> AsyncIterator[None]:
    """Count an email of a client. If the block fails, it does not count. Raises `RateLimited`.

    Addresses that differ only in what follows a plus are one recipient.
    """
    if call.caller.server_key is not None:
        yield
        return
    rate, recipient = (
        call.app_limits.rate,
        recipient_of(without_tag(to), call.app_id, keyring=call.services.keyring),
    )
    buckets = [
        Bucket("mail_user", rate("mail_user"), call.caller.user),
        Bucket("mail_recipient", rate("mail_recipient"), sha256_hex(recipient.encode())[:32]),
    ]
    counted = await count_together(call.services, call.request, call.caller, buckets, tag=_TAG)
    try:
        yield
    except BaseException:
        await counted.take_back()
        raise
