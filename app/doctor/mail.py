"""Checks each mail server in configs, by connecting to it as if to send an email."""

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from app.doctor.findings import Area, error_text
from app.doctor.surroundings import Surroundings
from app.doctor.targets import unchecked, usable_configs
from app.mail.sending import own_host, url_of
from app.settings import Settings
from storage.configs.kinds.mail_accounts import MAIL_ACCOUNTS, MailAccount
from storage.operators.doctor_reports import Finding
from vendors.account import Account
from vendors.errors import VendorError
from vendors.mail.smtp import SmtpClient, SmtpOptions

AREA = Area("mail")
_WITHIN_S = 15


async def check(here: Surroundings) -> AsyncIterator[Finding]:
    for finding in unchecked(AREA, here, [MAIL_ACCOUNTS]):
        yield finding
    if here.configs is None:
        return
    accounts = list(usable_configs(here.configs, MAIL_ACCOUNTS))
    if accounts and not here.settings.has_public_url:
        yield AREA.broken(
            "links",
            "PARLEY_PUBLIC_URL is not set",
            why="no email that has a link is sent",
            fix="set it to the URL at which users reach this server",
        )
    checked = (_check_account(here.settings, f"{app_id}/{name}", value) for app_id, name, value in accounts)
    for finding in await asyncio.gather(*checked):
        yield finding


async def _check_account(settings: Settings, name: str, config: MailAccount) -> Finding:
    url = url_of(config, settings)
    if url is None:
        return AREA.broken(
            name, "the local inbox does not run", why="no email is sent", fix="correct host in the config"
        )
    account = Account(name, MAIL_ACCOUNTS.name, url, config.password)
    options = SmtpOptions(tls=config.tls, username=config.username, own_host=own_host(settings))
    try:
        async with asyncio.timeout(_WITHIN_S):
            await SmtpClient(None, account, options).check(smtputf8=config.smtputf8)
    except (VendorError, TimeoutError) as error:
        return AREA.broken(
            name,
            f"{url}: {error_text(error)}",
            why="emails go to the next account of their config, or wait",
            fix="correct the config mail_accounts, allow connections to the port, or repair the mail server",
        )
    seen = f"{url}, {config.tls}, {'with a login' if config.username else 'without a login'}"
    host = urlsplit(url).hostname
    if config.tls == "none" and config.username and host not in {"127.0.0.1", "::1", "localhost"}:
        return AREA.doubtful(
            name, seen, why="the password can be read on the way", fix="set tls to starttls or implicit"
        )
    return AREA.good(name, seen)
