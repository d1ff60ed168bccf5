"""Tells the sandbox which webhooks of a development server its payment platforms call."""

import aiohttp

from actors.paypal_clients import sandbox_apps
from storage.configs import ConfigStore


async def register_webhooks(configs: ConfigStore, *, sandbox_url: str, server_url: str) -> None:
    """Register a webhook for each config of a payment platform that names the sandbox."""
    async with aiohttp.ClientSession(raise_for_status=True) as http:
        for key, config in (found for app_id in configs.apps() for found in sandbox_apps(configs, app_id)):
            if config.webhook_id:
                url = f"{server_url}/bp/webhook/{key.kind}/{key.app_id}/{key.name}"
                body = {"client_id": config.client_id, "id": config.webhook_id, "url": url}
                await http.post(f"{sandbox_url}/paypal/_control/webhook", json=body)
