"""The example of a voice chat in the browser, from an empty folder: a page of another origin than the server."""

import re
import wave
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio
from playwright.async_api import Request, expect
from yarl import URL

from tests.browser.accessibility import check_accessibility
from tests.browser.chromium import running_chromium
from tests.browser.conftest import Put
from tests.browser.controlled_vendor import ControlledVendor
from tests.browser.pictures import keep_picture
from tests.browser.talk_page import TalkPage
from tests.clients.examples.projects import Project, clone, copied
from tests.clients.typescript.conftest import built
from tests.peers.vendor import Vendor
from tests.running.ports import free_ports
from tests.running.servers import Server

__all__ = ["built", "clone"]

KEY = "a key of the example"
OTHER = "http://other.example"
"""A server that the app does not belong to."""
PAUSE_S = 3
SECONDS = re.compile(r"[0-9]\.\d seconds")
"""What the recognizer hears: how long the audio is."""
SECRETS = """() => Object.values(localStorage).map((stored) => {
    try { return JSON.parse(stored).token; } catch { return stored; }
})"""
"""The tokens of sessions, and the ids of devices."""
LONG_STORY = "\n\n".join(["The boats went out with the tide.", "Then a bell rang."] * 12)


@pytest.fixture
def app() -> str:
    return f"app-{uuid4().hex}"


@pytest_asyncio.fixture(loop_scope="session")
async def strategy(app: str, put: Put, vendor: Vendor, controlled_vendor: ControlledVendor) -> str:
    """A strategy of an app that requires signatures. It hears how long the audio is, and tells a long story."""
    await put("apps", "default", {"title": "Example", "cors": {"origins": ["*"]}}, app_id=app)
    sign_keys = [{"id": "example", "key": KEY}]
    await put("auth", "default", {"require_sign": True, "require_nonce": True, "sign_keys": sign_keys}, app_id=app)
    await put("vendor_accounts", "chat", {"platform": "vendor_b_llm", "base_url": vendor.url}, app_id=app)
    await put("vendor_accounts", "ears", {"platform": "local_audio", "base_url": controlled_vendor.url}, app_id=app)
    await put("vendor_accounts", "voices", {"platform": "local_audio"}, app_id=app)
    await put("recognition", "ears", {"account": "ears", "model": "duration"}, app_id=app)
    await put("speech", "voice", {"account": "voices", "model": "espeak", "voice": "en-us"}, app_id=app)
    chat = {"account": "chat", "model": f"say:{LONG_STORY}"}
    await put("conversation", "example", {"chat": chat, "recognition": "ears", "speech": "voice"}, app_id=app)
    return "example"


@pytest_asyncio.fixture(loop_scope="session")
async def talkative(microphone: Path, server: Server, tmp_path: Path) -> AsyncIterator[TalkPage]:
    """A page with somebody at its microphone who asks again and again, and pauses for the answers."""
    with wave.open(str(microphone)) as spoken, wave.open(str(tmp_path / "again.wav"), "wb") as again:
        again.setparams(spoken.getparams())
        again.writeframes(spoken.readframes(spoken.getnframes()) + bytes(2 * PAUSE_S * spoken.getframerate()))
    async with running_chromium(tmp_path / "again.wav", again=True) as browser:
        context = await browser.new_context(permissions=["microphone"])
        yield TalkPage(await context.new_page(), server)


@pytest.fixture
def project(built: None, clone: Path, tmp_path: Path) -> Project:
    (port,) = free_ports(1)
    return copied("web-voice", tmp_path, clone, PAGE_PORT=str(port))


def configure(project: Project, **settings: str) -> None:
    """Replace settings in the file in which the developer writes them."""
    path = project.folder / "config.js"
    text = path.read_text()
    for name, value in settings.items():
        text, replaced = re.subn(rf"^  {name}: [^,]*,", f'  {name}: "{value}",', text, flags=re.MULTILINE)
        assert replaced == 1, name
    path.write_text(text)


async def test_the_example_is_held_interrupted_and_talks_without_hands(
    project: Project, talkative: TalkPage, app: str, strategy: str
) -> None:
    install, serve = project.commands
    await project.run(install)
    configure(project, url=talkative.server.url, app=app, signKey=KEY, strategy=strategy)
    page = talkative.page
    await page.add_init_script(path=Path(__file__).parent / "watch.js")
    async with project.running(serve) as web:
        await web.says("Serving HTTP")
        address = f"http://127.0.0.1:{project.env['PAGE_PORT']}/?url={OTHER}&app=other&key=other"
        orb, said, answers = page.locator("#orb"), page.locator("li.user"), page.locator("li.answer")
        async with page.expect_response("**/bp/user/login"):
            await page.goto(address)
        await talkative.press(orb)
        await talkative.speech_ended()
        await page.mouse.up()
        await expect(orb).to_have_text("Speaking…")
        await expect(said).to_have_text(SECONDS)
        assert LONG_STORY.startswith((await answers.inner_text())[:60])
        await keep_picture(page, "web-voice")
        await page.locator("#stop").click()
        await expect(orb).to_have_text("Hold to talk")

        async with page.expect_request(heard_something):
            await page.locator("#hands-free").check()
        await page.locator("#hands-free").uncheck()
        await page.locator("#stop").click()
        assert await said.count() >= 2
        await page.set_viewport_size({"width": 390, "height": 844})
        await check_accessibility(page, all_violations=True)
        await page.emulate_media(color_scheme="dark")
        await keep_picture(page, "web-voice-phone-dark")
        await expect(page.locator("#fault")).to_be_empty()

        secrets = set(await page.evaluate(SECRETS))
        assert len(secrets) == 2
        configure(project, url=OTHER)
        async with page.expect_request(f"{OTHER}/**") as first, page.expect_event("requestfailed"):
            await page.route(f"{OTHER}/**", lambda route: route.abort())
            await page.goto(address)
        sent = f"{await (await first.value).all_headers()} {(await first.value).post_data}"
        assert not [secret for secret in secrets if secret in sent], "it is of another server"
        assert secrets < set(await page.evaluate(SECRETS))


def heard_something(request: Request) -> bool:
    """Return whether this interrupts an answer of which something was heard."""
    return request.method == "DELETE" and int(URL(request.url).query.get("heard_ms", 0)) > 0
