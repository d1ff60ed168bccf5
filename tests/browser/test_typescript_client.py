"""The TypeScript client in Chromium, on a page from another origin than the server's."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from playwright.async_api import Browser

from storage.operators.audit import COMMAND
from tests.clients.typescript.conftest import CLIENT, built
from tests.peers.vendor import Vendor
from tests.running.servers import Server

__all__ = ["built"]

KEY = "k-apps-" + "k" * 32
TURNS = """
async ([url, signKey]) => {
  const { ParleyClient } = await import("/dist/index.js");
  const client = new ParleyClient(url, "default", { signKey });
  await client.signIn("device", { id: "a browser" });
  const options = { strategies: ["one"], languageCode: "en-US" };
  const first = client.converse({ ...options, text: "Good mörning" });
  const names = [];
  for await (const event of first) names.push(event.name);
  async function* typed() {
    yield "How ";
    yield "are you?";
  }
  const second = client.converse({ ...options, text: typed(), conversationId: first.conversationId });
  await second.finish();
  const third = client.converse({ ...options, strategies: ["none"], text: "Hi" });
  const refused = await third.finish().catch((error) => error);
  const { errorType, requestId } = refused;
  return { names, text: first.text, input: second.userInput, record: second.end.record_id, errorType, requestId };
}
"""

REDIRECTED = """
async () => {
  const { ParleyClient } = await import("/dist/index.js");
  const client = new ParleyClient(location.origin);
  const { errorType, message } = await client.user().catch((error) => error);
  return { errorType, message };
}
"""


@pytest.fixture
async def page_url(built: None) -> AsyncIterator[str]:
    """A site that has the client."""
    app = web.Application()
    app.router.add_get("/", _empty_page)
    app.router.add_get("/bp/user/me", _redirect)
    app.router.add_static("/dist", CLIENT / "dist")
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def _empty_page(request: web.Request) -> web.Response:
    return web.Response(text="<!doctype html><title>A site</title>", content_type="text/html")


async def _redirect(request: web.Request) -> web.Response:
    return web.Response(status=301, headers={"Location": "/"})


async def test_a_page_from_another_origin_signs_in_and_converses(
    chromium: Browser, shared_server: Server, vendor: Vendor, page_url: str
) -> None:
    configs = {
        ("apps", "default"): {"cors": {"origins": [page_url]}},
        ("auth", "default"): {"require_sign": True, "sign_keys": [{"id": "one", "key": KEY}]},
        ("vendor_accounts", "test"): {"platform": "vendor_b_llm", "base_url": vendor.url},
        ("conversation", "one"): {"chat": {"account": "test", "model": "say:Hello there"}},
    }
    for (kind, name), value in configs.items():
        await shared_server.services.configs.put("default", kind, name, value, author="test", origin=COMMAND)
    page = await chromium.new_page()
    try:
        await page.goto(page_url)
        seen = await page.evaluate(TURNS, [shared_server.url, KEY])
    finally:
        await page.close()
    assert seen["names"][:2] == ["start", "user_input"]
    assert seen["names"][-1] == "end"
    assert (seen["text"], seen["input"], seen["record"]) == ("Hello there", "How are you?", 2)
    assert seen["errorType"] == "item_not_found"
    assert seen["requestId"]


async def test_a_redirect_is_not_followed(chromium: Browser, page_url: str) -> None:
    page = await chromium.new_page()
    try:
        await page.goto(page_url)
        seen = await page.evaluate(REDIRECTED)
    finally:
        await page.close()
    message = "not_understood: a redirect is not followed, and browsers do not tell its status"
    assert seen == {"errorType": "not_understood", "message": message}
