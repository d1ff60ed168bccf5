"""The profiles of people are stored only if the config of their platform says so."""

from typing import Any
from uuid import uuid4

import pytest

from storage.operators.audit import COMMAND
from tests.app.accounts.people import login
from tests.app.accounts.platforms import proof
from tests.app.sandbox_server import module_server, server, testbed

__all__ = ["module_server", "server", "testbed"]


@pytest.mark.parametrize(
    ("platform", "provider"),
    [
        ("search_vendor_id", "google"),  # The profile is in the id token,
        ("retail_platform", "taobao"),  # in the answer about the code,
        ("chat_network", "line"),  # in an answer about the access token,
        ("microblog", "weibo"),  # or fetched by a job.
    ],
)
async def test_no_profile_is_stored_if_the_config_says_so(server, platform, provider):
    async def put(kind: str, name: str, value: dict[str, Any]) -> None:
        await server.services.configs.put("discreet", kind, name, value, author="tests", origin=COMMAND)

    await put("apps", "default", {})
    await put("auth", "default", {"require_sign": False})
    config = {
        "provider": provider,
        "base_url": f"{{sandbox}}/{provider}",
        "audiences": ["sandbox-app"],
        "client_id": "sandbox-app",
        "client_secret": "sandbox-secret",
        "redirect_uri": "https://app.test/callback",
    }
    subject = f"1{uuid4().int}"[:18]
    stored = {}
    for fetch_profile in (False, True):
        await put("sign_in", platform, {**config, "fetch_profile": fetch_profile})
        body = await proof(server, platform, subject, provider=provider)
        status, _ = await login(server, body, headers={"X-Service-App-Id": "discreet"})
        assert status == 200
        async with server.services.database.connection() as conn:
            stored[fetch_profile] = await conn.fetchval(
                "select exists (select from identities where social_id = $1 and profile is not null)"
                " or exists (select from procrastinate_jobs where args ->> 'social_id' = $1)",
                subject,
            )
    assert stored == {False: False, True: True}
