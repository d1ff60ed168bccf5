"""Writes the emails about accounts, and stores the jobs that send them."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from pydantic import AfterValidator

from app.accounts.mails.account_text import request_text
from app.accounts.mails.not_me import LIFETIME, not_me_link
from app.accounts.mails.texts import Purpose, choose_template, event_text, language_of
from app.accounts.proofs.addresses import require_sending, sending_config
from app.http.links import public_link
from app.http.rows.endpoint import Call
from app.mail_templates import allowed_variables, names_in, rendered
from app.mail_urls import host_of, shown_address
from app.services import Services
from storage.accounts import emails
from storage.configs.kinds.apps import APPS
from storage.configs.kinds.email import Email, Template
from storage.jobs.jobs import enqueue
from storage.mail.mail import MailContent, SendMail
from storage.postgres.database import Connection
from streams.wire.codec import dumps
from streams.wire.errors import ConfigInvalid

_VARIABLES_BYTES = 8 * 1024
_CUSTOM = "CustomVariables"
_MAIL_BYTES = 2 * 1024 * 1024
"""Maximum total size of the subject and the parts of an email. Every template fits into it."""


def _small(variables: dict[str, Any]) -> dict[str, Any]:
    if len(dumps(variables)) > _VARIABLES_BYTES:
        raise ValueError(f"must be at most {_VARIABLES_BYTES} bytes")
    return variables


CustomVariables = Annotated[dict[str, Any], AfterValidator(_small)]
"""Variables of a request, which templates insert with `{{.CustomVariables.key}}`."""


def verify_link(services: Services, code: str) -> str:
    return public_link(services, f"/bp/user/email/verify?verify_code={quote(code)}")


def reset_page(services: Services, app_id: str) -> str:
    """Return the page that asks for a new password. Raises `ConfigInvalid` if no email can link to it."""
    return sending_config(services, app_id).reset_url or public_link(services, "/account/reset")


def reset_link(services: Services, app_id: str, code: str) -> str:
    return with_query(reset_page(services, app_id), random_code=code)


def with_query(url: str, **values: str) -> str:
    """Return a URL with further parameters in its query."""
    base, hash_, fragment = url.partition("#")
    return f"{base}{'&' if '?' in base else '?'}{urlencode(values)}{hash_}{fragment}"


async def enqueue_mail(
    services: Services,
    conn: Connection,
    app_id: str,
    purpose: Purpose,
    *,
    uid: str | None,
    to: str,
    language: str,
    values: Mapping[str, Any],
    expires_s: float,
) -> None:
    """Store the job that sends an email. `conn` is in the transaction of the change that causes the email.

    `uid` is the user that the email is about, or `None` if anybody can request it for an address. For the other
    parameters and errors, see `write_mail`.
    """
    content = write_mail(services, app_id, purpose, to=to, language=language, values=values)
    await enqueue(conn, SendMail.seal(app_id, content, keyring=services.keyring, uid=uid, expires_s=expires_s))


def write_mail(
    services: Services, app_id: str, purpose: Purpose, *, to: str, language: str, values: Mapping[str, Any]
) -> MailContent:
    """Return an email. `language` is the reader's `Accept-Language`.

    Raises `InvalidParameter` if custom variables lead to foreign hosts, or do not fit into the email.
    """
    config = sending_config(services, app_id)
    translations: Mapping[str, Template] = getattr(config.templates, purpose)
    tag, template = choose_template(purpose, language, translations, variables=values, color=config.color)
    app = services.configs.singleton(APPS, app_id).title or app_id
    shown = [name.split(".")[1] for name in names_in(template) if name.startswith(f"{_CUSTOM}.")]
    custom = allowed_variables(values.get(_CUSTOM, {}), shown, url_hosts=_url_hosts(config))
    given = {"App": app, "Initial": app[0].upper(), "Email": shown_address(to), **values, _CUSTOM: custom}
    email = rendered(template, given, max_bytes=_MAIL_BYTES)
    return MailContent(
        to=to,
        subject=email.subject,
        text=email.text,
        html=email.html,
        language=tag,
        sender=config.from_,
        accounts=config.mail_accounts,
    )


def _url_hosts(config: Email) -> set[str]:
    """Return the hosts to which custom variables may lead: those of the app's own pages, and further ones."""
    return {*config.url_hosts, *(host_of(url) for url in (config.verify_redirect_url, config.reset_url) if url)}


async def send_notice(
    call: Call, conn: Connection, app_id: str, uid: str, event: str, *, to: str, with_link: bool = True
) -> None:
    """Store the job that notifies the owner of an address that `call` changes the account.

    `with_link` adds the link "this was not me".
    """
    services, language = call.services, language_of(call.request)
    values = {"Event": event_text(event, language), "Requested": request_text(call, None, what="changed")}
    if with_link:
        values["NotMeLink"] = not_me_link(services, app_id, uid, address=to, frees=False)
    expires_s = (services.clock.now(app_id) + LIFETIME).timestamp()
    await enqueue_mail(
        services, conn, app_id, "notice", uid=uid, to=to, language=language, values=values, expires_s=expires_s
    )


async def notify_user(call: Call, conn: Connection, app_id: str, uid: str, event: str) -> None:
    """Send a notice to the verified address of a user, if there is one and the app can send emails."""
    addresses = await emails.find(conn, app_id, uid)
    if addresses.verified and sends_mails(call.services, app_id):
        await send_notice(call, conn, app_id, uid, event, to=addresses.current)


def sends_mails(services: Services, app_id: str) -> bool:
    """Return whether the app can send emails with links."""
    try:
        require_sending(services, app_id)
        public_link(services, "")
    except ConfigInvalid:
        return False
    return True
