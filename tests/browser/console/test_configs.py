"""The console: configs are made, found, ordered, limited, deleted and restored, by what the pages say."""

import re
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest_asyncio
from playwright.async_api import Page, expect

from storage.configs.kinds import KINDS
from storage.configs.rows import ConfigKey
from storage.operators.audit import COMMAND
from tests.browser.console.console_page import DESKTOP, PHONE, check
from tests.browser.page_faults import PageFaults
from tests.peers.vendor import Vendor
from tests.running.servers import Server

NEW = ["404"]
"""What the browser logs on the page of a config that does not exist yet."""


@pytest_asyncio.fixture(loop_scope="session")
async def app(server: Server) -> AsyncIterator[str]:
    """An app of this test, which is deleted with its configs afterwards."""
    app_id = f"shop-{uuid4().hex[:8]}"
    yield app_id
    configs = server.services.configs
    for row in reversed(await configs.overview(app_id=app_id)):
        await configs.delete(row.key, author="test", origin=COMMAND)


@pytest_asyncio.fixture(loop_scope="session")
async def page(app: str, page: Page) -> Page:
    """The list of configs. It is closed before `app` is deleted."""
    await page.get_by_role("link", name="Apps and configs").click()
    await expect(page.get_by_role("heading", name="Apps and configs")).to_be_visible()
    return page


async def save(page: Page) -> None:
    await page.get_by_role("button", name="Review changes").click()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Saved as revision")).to_be_visible()


async def open_config(page: Page, server: Server, app_id: str, kind: str, name: str) -> None:
    await page.goto(f"{server.url}/console#/configs/{app_id}/{kind}/{name}")
    await expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()


def value_of(server: Server, app_id: str, kind: str, name: str = "default") -> Any:
    return server.services.configs.get(KINDS[kind], app_id, name).value


async def test_an_app_and_its_first_config_are_made(
    page: Page, server: Server, app: str, page_faults: PageFaults
) -> None:
    page_faults.expected = NEW
    await page.get_by_role("button", name="New app").click()
    dialog = page.get_by_role("dialog")
    await check(page, "new-app")
    await dialog.get_by_label("App id").fill("default")
    await dialog.get_by_role("button", name="New app").click()
    await expect(dialog.get_by_role("alert")).to_have_text("The app default exists already.")
    await dialog.get_by_label("App id").fill(app)
    await dialog.get_by_label("Title").fill("Shop")
    await dialog.get_by_label("Currency").fill("eur")
    await dialog.get_by_role("button", name="New app").click()
    await expect(page).to_have_url(re.compile(f"configs/{app}/apps/default"))
    assert (value_of(server, app, "apps").title, value_of(server, app, "apps").currency) == ("Shop", "EUR")
    await page.get_by_role("link", name="Money").click()
    await expect(page.get_by_role("combobox", name="App").locator(f"option[value={app}]")).to_have_count(1)

    await page.goto(f"{server.url}/console#/configs?app={app}")
    await page.get_by_role("button", name="New config").click()
    await expect(dialog.get_by_role("combobox", name="App", exact=True)).to_have_value(app)
    await dialog.get_by_role("combobox", name="App", exact=True).select_option(app)
    await expect(dialog.get_by_role("combobox", name="App", exact=True)).to_have_value(app)
    await dialog.get_by_role("combobox", name="Kind").select_option("limits")
    await expect(dialog.get_by_text("named default")).to_be_visible()
    await dialog.get_by_role("combobox", name="Kind").select_option("vendor_accounts")
    await dialog.get_by_label("Name").fill("claude")
    await check(page, "new-config")
    await dialog.get_by_role("button", name="Open draft").click()
    await expect(page.get_by_role("heading", name="claude", level=1)).to_be_visible()
    await expect(page.locator("#field-platform-names option[value=anthropic]")).to_have_count(1)
    await page.get_by_label("platform").first.fill("anthropic")
    await save(page)
    assert value_of(server, app, "vendor_accounts", "claude").platform == "anthropic"


async def test_strategies_are_put_in_order(page: Page, server: Server, app: str, put: Any) -> None:
    await put("apps", "default", {"strategy_order": ["gone"]}, app_id=app)
    await put("vendor_accounts", "main", {"platform": "scripted"}, app_id=app)
    for name in ("openai", "claude"):
        await put("conversation", name, {"chat": {"account": "main"}}, app_id=app)
    await open_config(page, server, app, "conversation", "openai")
    await page.set_viewport_size(PHONE)
    await page.get_by_role("link", name="Order of strategies").click()
    entries = page.get_by_role("group", name="Order of strategies").get_by_role("listitem")
    await expect(entries).to_have_count(1)
    await expect(entries).to_contain_text("gone (missing)")
    for name in ("openai", "claude"):
        await page.get_by_label("Add to Order of strategies").select_option(name)
    await page.get_by_role("button", name="Remove gone").click()
    await page.get_by_role("button", name="Move claude up").click()
    await expect(page.get_by_role("button", name="Move claude up")).to_be_disabled()
    await check(page, "strategy-order")
    await save(page)
    assert value_of(server, app, "apps").strategy_order == ["claude", "openai"]


async def test_a_limit_is_found_by_a_word_and_changed_on_a_phone(
    page: Page, server: Server, app: str, put: Any, page_faults: PageFaults
) -> None:
    page_faults.expected = NEW
    await put("apps", "default", {}, app_id=app)
    await page.goto(f"{server.url}/console#/configs?app={app}")
    await expect(page.get_by_role("combobox", name="App")).to_have_value(app)
    await page.set_viewport_size(PHONE)
    search = page.get_by_role("searchbox")
    await search.fill("streams")
    await search.press("Enter")
    found = page.get_by_role("region", name="Settings that match “streams”")
    await expect(found).to_contain_text("Streams per user")
    await search.fill("temperature")
    await search.press("Enter")
    nested = page.get_by_role("region", name="Settings that match “temperature”")
    await expect(nested).to_contain_text("Chat in Conversation")
    await search.fill("streams")
    await search.press("Enter")
    await expect(found).to_contain_text("Streams per user")
    await check(page, "found-settings")
    await page.set_viewport_size(PHONE)
    await found.get_by_role("listitem").filter(has_text="Streams per user").get_by_role("link").click()
    await expect(page.get_by_label("Find a field")).to_have_value("Streams per user")
    await page.get_by_label("Streams per user").fill("2")
    await page.get_by_role("button", name="Show all fields").click()
    await expect(page.get_by_role("heading", name="Times and timeouts")).to_be_visible()
    await check(page, "limits")
    await page.set_viewport_size(PHONE)
    await save(page)
    assert value_of(server, app, "limits").streams_per_user == 2
    await page.get_by_role("button", name="Show all fields").click()
    await expect(page.locator("section .field").first).to_contain_text("Set")
    await page.get_by_label("Find a field").fill("no such field")
    await expect(page.get_by_text("No field of this config matches")).to_be_visible()


async def test_references_are_chosen_from_what_exists(page: Page, server: Server, app: str, put: Any) -> None:
    await put("apps", "default", {}, app_id=app)
    await put("vendor_accounts", "main", {"platform": "scripted"}, app_id=app)
    await put("conversation", "one", {"chat": {"account": "main"}, "speech": "nowhere"}, app_id=app)
    await page.goto(f"{server.url}/console#/configs?app={app}")
    await expect(page.get_by_text("names speech nowhere, which does not exist")).to_be_visible()
    await check(page, "warnings")
    await page.get_by_role("link", name="one", exact=True).click()
    await expect(page.get_by_role("note")).to_contain_text("names speech nowhere, which does not exist")
    speech = page.get_by_label("Speech", exact=False)
    await expect(speech).to_have_value("nowhere")
    await expect(speech.locator("option:checked")).to_have_text("nowhere (missing)")
    await expect(page.get_by_text("No config nowhere of kind speech exists in this app.")).to_be_visible()
    await expect(page.get_by_text("This app has no config of kind speech yet.")).to_be_visible()
    await check(page, "missing-reference")
    await page.get_by_label("Voices at once").fill("3")
    await page.get_by_role("button", name="Review changes").click()
    review = page.get_by_role("region", name="What changes")
    await expect(review).to_contain_text("names speech nowhere, which does not exist")
    await page.get_by_role("link", name="Open main").click()
    await expect(page.get_by_role("heading", name="main", level=1)).to_be_visible()


async def test_a_draft_survives_a_reload_without_its_secrets(
    page: Page, server: Server, app: str, put: Any
) -> None:
    await put("apps", "default", {}, app_id=app)
    await put("vendor_accounts", "main", {"platform": "anthropic"}, app_id=app)
    await open_config(page, server, app, "vendor_accounts", "main")
    await page.get_by_label("Concurrency").fill("7")
    await page.get_by_label("Api key").fill("sk-typed")
    await expect(page.get_by_role("button", name="Review changes")).to_be_enabled()
    await page.reload()
    await expect(page.get_by_text("This is your unsaved draft")).to_be_visible()
    await expect(page.get_by_label("Concurrency")).to_have_value("7")
    await expect(page.get_by_label("Api key")).to_have_value("")
    assert "sk-typed" not in await page.evaluate("JSON.stringify(sessionStorage)")
    await check(page, "draft")
    await page.get_by_role("link", name="Apps and configs").first.click()
    await page.get_by_role("note").get_by_role("link", name="main").click()
    await page.get_by_role("button", name="Discard the draft").click()
    await expect(page.get_by_label("Concurrency")).to_have_value("")
    await expect(page.get_by_text("Nothing has changed.")).to_be_visible()


async def test_json_is_checked_while_one_types(page: Page, server: Server, app: str, put: Any) -> None:
    await put("apps", "default", {}, app_id=app)
    await put("vendor_accounts", "main", {"platform": "scripted"}, app_id=app)
    await put("conversation", "one", {"chat": {"account": "main"}}, app_id=app)
    await open_config(page, server, app, "conversation", "one")
    await page.get_by_role("button", name="JSON").click()
    editor, faults = page.get_by_label("JSON"), page.locator("#raw-faults")
    await editor.fill('{\n  "chat": {\n    "account": "main",\n    "temperature": 9\n  }\n}')
    await expect(faults).to_contain_text("Line 4 chat.temperature must be at most 2")
    await check(page, "json")
    await faults.get_by_role("button", name="Line 4").click()
    assert "temperature" in await page.evaluate("getSelection().toString()")
    await editor.fill('{\n  "chat": {\n    "account": "main",\n  }\n}')
    await expect(faults).to_have_text("Line 4 a name in quotation marks is expected")
    await expect(page.get_by_text("Correct the JSON before you review the changes.")).to_be_visible()
    await expect(page.get_by_role("button", name="Review changes")).to_be_disabled()
    await editor.fill('{"chat": {"account": "main", "temperature": 1}}')
    await expect(faults).to_have_text("The JSON is valid, and the server accepts it.")
    await save(page)
    assert value_of(server, app, "conversation", "one").chat.temperature == 1


async def test_a_config_that_others_name_is_deleted_and_restored(
    page: Page, server: Server, app: str, put: Any, page_faults: PageFaults
) -> None:
    page_faults.expected = NEW
    await put("apps", "default", {}, app_id=app)
    await put("vendor_accounts", "main", {"platform": "scripted"}, app_id=app)
    await put("conversation", "one", {"chat": {"account": "main"}}, app_id=app)
    await open_config(page, server, app, "vendor_accounts", "main")
    await page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("link", name="conversation one")).to_be_visible()
    await check(page, "delete-config")
    await page.set_viewport_size(PHONE)
    await dialog.get_by_label("Reason").fill("Replaced")
    await dialog.get_by_label("Type main to confirm").fill("main")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("main was deleted.")).to_be_visible()
    assert not server.services.configs.exists(KINDS["vendor_accounts"], app, "main")
    await expect(page.get_by_text("This config was deleted.")).to_be_visible()
    await page.get_by_role("button", name="History").click()
    await expect(page.get_by_role("table", name="History")).to_contain_text("Replaced")
    await check(page, "history")
    await page.set_viewport_size(PHONE)
    await page.get_by_role("button", name="Restore revision 1").click()
    await expect(dialog).to_contain_text("scripted")
    await dialog.get_by_label("Why").fill("Still needed")
    await dialog.get_by_role("button", name="Restore revision 1").click()
    await expect(page.get_by_text("Revision 1 was restored.")).to_be_visible()
    assert server.services.configs.exists(KINDS["vendor_accounts"], app, "main")
    history = await server.services.configs.history(ConfigKey(app, "vendor_accounts", "main"))
    assert history[0].comment == "Still needed"
    await page.set_viewport_size(DESKTOP)
    await page.get_by_role("button", name="Delete").click()
    await dialog.get_by_label("Reason").fill("Replaced for good")
    await dialog.get_by_label("Type main to confirm").fill("main")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("main was deleted.")).to_be_visible()
    assert not server.services.configs.exists(KINDS["vendor_accounts"], app, "main")
    await put("vendor_accounts", "main", {"platform": "scripted"}, app_id=app)


async def test_a_long_history_has_pages(page: Page, server: Server, app: str, put: Any) -> None:
    for number in range(27):
        await put("apps", "default", {"title": f"Title {number}"}, app_id=app)
    await page.goto(f"{server.url}/console#/configs/{app}/apps/default")
    await page.get_by_role("button", name="History").click()
    await page.get_by_role("button", name="Older revisions").click()
    await page.get_by_role("button", name="Restore revision 1", exact=True).click()
    await expect(page.get_by_role("dialog")).to_contain_text("Title 0")


async def test_an_account_is_tried_with_one_of_its_models(
    page: Page, server: Server, app: str, put: Any, vendor: Vendor
) -> None:
    await put("apps", "default", {}, app_id=app)
    await put("vendor_accounts", "main", {"platform": "openai", "base_url": vendor.url}, app_id=app)
    await open_config(page, server, app, "vendor_accounts", "main")
    await page.get_by_role("button", name="Try", exact=True).click()
    await page.get_by_label("Language model").fill("refuse:401")
    await page.get_by_role("button", name="Try it").click()
    await expect(page.get_by_role("alert")).to_contain_text("401")
    await page.get_by_label("Language model").fill("say:The key works")
    await page.get_by_role("button", name="Try it").click()
    await expect(page.get_by_text("The key works", exact=True)).to_be_visible()
    await check(page, "account-trial")
