"""The job that sends a code to a phone number through the app's webhook."""

import structlog

from app.services import Services
from storage.accounts.sms import SendSms
from storage.configs.kinds.sms import SMS, Sms
from storage.configs.kinds.urls import resolve_url
from storage.configs.rows import ConfigKey
from streams.wire.errors import ConfigInvalid
from streams.wire.template import render
from vendors.account import Account
from vendors.catalog import Capability
from vendors.sms.webhook import SmsMessage, SmsWebhook

log = structlog.get_logger()

_NAME = "default"
"""The config of kind `sms` that sends codes."""
_WITHIN_S = 10
_TEXT_MESSAGES = Capability[None, SmsWebhook]("sms").by(SmsWebhook)


def config_of(services: Services, app_id: str) -> Sms:
    """Return the config that sends codes. Raises `ConfigInvalid` if it is missing or cannot be used."""
    config = services.configs.required(SMS, app_id, _NAME).value
    _url(services, config)
    return config


async def send_sms(services: Services, job: SendSms) -> None:
    """Send a code, unless it has expired. The webhook recognizes a repeated call by its id."""
    if services.clock.now(job.app_id).timestamp() >= job.expires_s:
        log.warning("sms.expired", app_id=job.app_id, sms_id=job.sms_id)
        return
    config, content = config_of(services, job.app_id), job.content(services.keyring)
    account = Account(_NAME, SMS.name, _url(services, config), config.secret, config.concurrency)
    key = ConfigKey(job.app_id, SMS.name, _NAME)
    webhook = services.vendors.open(_TEXT_MESSAGES, account, key=key, limits=config)
    text = render(config.template, {"Code": content.code})
    message = SmsMessage(job.sms_id, job.app_id, content.to, text, content.code)
    await webhook.call(None, lambda client: client.send(message), within_s=_WITHIN_S)


def _url(services: Services, config: Sms) -> str:
    url = resolve_url(config.url, sandbox_url=services.settings.sandbox_url)
    if url is None:
        raise ConfigInvalid(f"sms {_NAME}: url names the sandbox, which does not run")
    return url
