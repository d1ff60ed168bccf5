"""Registers the webhooks of a development server at the sandbox's payment platforms."""

import aiohttp

from app.platforms.sandbox import sandbox_configs
from storage.configs.kinds.cardpay import CardPay
from storage.configs.store import ConfigStore


async def register_webhooks(configs: ConfigStore, *, sandbox_url: str, server_url: str) -> None:
    """Register a webhook for each config of a payment platform that names the sandbox and can verify webhooks."""
    async with aiohttp.ClientSession(raise_for_status=True) as http:
        for key, config in (found for app_id in configs.apps() for found in sandbox_configs(configs, app_id)):
            url = f"{server_url}/bp/webhook/{key.kind}/{key.app_id}/{key.name}"
            if isinstance(config, CardPay):
                if config.webhook_secrets:
                    form = {"url": url, "enabled_events[]": "*"}
                    headers = {"Authorization": f"Bearer {config.secret_key.get_secret_value()}"}
                    await http.post(f"{sandbox_url}/stripe/v1/webhook_endpoints", data=form, headers=headers)
            elif config.webhook_id:
                body = {"client_id": config.client_id, "id": config.webhook_id, "url": url}
                await http.post(f"{sandbox_url}/paypal/_control/webhook", json=body)
