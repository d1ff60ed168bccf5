"""The console: configs are copied to other apps, and never written over what somebody else has saved."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from playwright.async_api import Page, ViewportSize, expect

from storage.configs.kinds import KINDS
from storage.configs.rows import ConfigKey
from storage.configs.store import ConfigStore
from storage.operators.audit import COMMAND
from tests.browser.console.console_page import check
from tests.browser.page_faults import PageFaults
from tests.running.servers import Server

SIZES = [ViewportSize(width=1280, height=800), ViewportSize(width=390, height=844)]
HERE, THERE = "https://here.example", "https://there.example"
at_both_sizes = pytest.mark.parametrize("size", SIZES, ids=["wide", "narrow"])


@pytest_asyncio.fixture(loop_scope="session")
async def apps(server: Server) -> AsyncIterator[list[str]]:
    """Ids of two apps of this test, which are deleted with their configs afterwards."""
    ids = [f"{word}-{uuid4().hex[:8]}" for word in ("from", "to")]
    yield ids
    configs = server.services.configs
    for app_id in ids:
        for row in reversed(await configs.overview(app_id=app_id)):
            await configs.delete(row.key, author="test", origin=COMMAND)


@pytest_asyncio.fixture(loop_scope="session")
async def page(apps: list[str], page: Page) -> Page:
    """The console. It is closed before `apps` are deleted."""
    return page


@pytest.fixture
def configs(server: Server) -> ConfigStore:
    return server.services.configs


async def stored(configs: ConfigStore, app_id: str, kind: str, name: str, value: Any) -> None:
    """Save a config as another operator."""
    await configs.put(app_id, kind, name, value, author="bea", origin=COMMAND)


async def open_config(page: Page, path: str, size: ViewportSize) -> None:
    await page.set_viewport_size(size)
    await page.evaluate("path => location.hash = `#/configs/${path}`", path)
    await expect(page.get_by_role("button", name="Review changes")).to_be_visible()


async def save(page: Page) -> None:
    await page.get_by_role("button", name="Review changes").click()
    await page.get_by_role("button", name="Save").click()


@at_both_sizes
async def test_a_copy_is_a_draft_of_a_config_that_exists_already(
    page: Page, configs: ConfigStore, apps: list[str], size: ViewportSize
) -> None:
    first, second = apps
    for app_id, address in ((first, HERE), (second, THERE)):
        await stored(configs, app_id, "apps", "default", {})
        account = {"platform": "anthropic", "base_url": address, "api_key": f"sk-of-{app_id}"}
        await stored(configs, app_id, "vendor_accounts", "main", account)
    await open_config(page, f"{first}/vendor_accounts/main", size)
    await page.get_by_label("Concurrency").fill("7")
    await page.get_by_label("Api key").fill("sk-typed")
    await page.get_by_label("Copy to another app").select_option(second)
    await expect(page.get_by_role("note")).to_contain_text(f"Copied from the app {first}")
    await expect(page.get_by_label("Concurrency")).to_have_value("7")
    assert "sk-typed" not in await page.evaluate("JSON.stringify(sessionStorage)")
    await page.get_by_role("button", name="Review changes").click()
    review = page.get_by_role("region", name="What changes")
    await expect(review).to_contain_text(HERE)
    await expect(review).to_contain_text("api_key must be given again, because base_url has changed")
    await expect(page.get_by_role("button", name="Save")).to_be_disabled()
    await check(page, f"copied-config-from-{size['width']}")
    await page.set_viewport_size(size)
    await page.get_by_label("Api key").fill("sk-new")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Saved as revision 2.")).to_be_visible()
    copied = configs.get(KINDS["vendor_accounts"], second, "main").value
    assert (copied.base_url, copied.concurrency, copied.api_key.get_secret_value()) == (HERE, 7, "sk-new")


async def test_a_copy_becomes_a_new_config_and_asks_before_it_replaces_a_draft(
    page: Page, configs: ConfigStore, apps: list[str], page_faults: PageFaults
) -> None:
    page_faults.expected = ["404"]
    first, second = apps
    for app_id in apps:
        await stored(configs, app_id, "apps", "default", {})
    await stored(configs, first, "limits", "default", {"streams_per_user": 3})
    await open_config(page, f"{first}/limits/default", SIZES[0])
    await page.get_by_label("Copy to another app").select_option(second)
    await expect(page.get_by_role("note")).to_contain_text(f"Copied from the app {first}")
    await page.get_by_label("Streams per user").fill("4")
    await open_config(page, f"{first}/limits/default", SIZES[0])
    page.once("dialog", lambda dialog: dialog.dismiss())
    await page.get_by_label("Copy to another app").select_option(second)
    await expect(page.get_by_label("Copy to another app")).to_have_value("")
    await open_config(page, f"{second}/limits/default", SIZES[0])
    await expect(page.get_by_label("Streams per user")).to_have_value("4")
    await open_config(page, f"{first}/limits/default", SIZES[0])
    page.once("dialog", lambda dialog: dialog.accept())
    await page.get_by_label("Copy to another app").select_option(second)
    await expect(page.get_by_label("Streams per user")).to_have_value("3")
    await expect(page.get_by_role("note")).to_contain_text(f"Copied from the app {first}")
    await save(page)
    await expect(page.get_by_text("Saved as revision 1.")).to_be_visible()
    assert configs.get(KINDS["limits"], second, "default").value.streams_per_user == 3


@at_both_sizes
async def test_a_new_app_does_not_replace_one_that_was_just_made(
    page: Page,
    configs: ConfigStore,
    apps: list[str],
    size: ViewportSize,
    page_faults: PageFaults,
) -> None:
    page_faults.expected = ["412"]
    app_id = apps[0]
    await page.get_by_role("link", name="Apps and configs").click()
    await page.set_viewport_size(size)
    await page.get_by_role("button", name="New app").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("App id").fill(app_id)
    await dialog.get_by_label("Title").fill("Mine")
    await stored(configs, app_id, "apps", "default", {"title": "Real app", "currency": "EUR"})
    await dialog.get_by_role("button", name="New app").click()
    await expect(dialog.get_by_role("alert")).to_have_text(f"The app {app_id} exists already.")
    app = configs.get(KINDS["apps"], app_id, "default")
    assert (app.value.title, app.value.currency, app.revision) == ("Real app", "EUR", 1)


@at_both_sizes
async def test_a_config_that_somebody_else_has_saved_is_looked_at_before_it_is_replaced(
    page: Page,
    configs: ConfigStore,
    apps: list[str],
    size: ViewportSize,
    page_faults: PageFaults,
) -> None:
    page_faults.expected = ["404", "412"]
    app_id = apps[0]
    await stored(configs, app_id, "apps", "default", {})
    await open_config(page, f"{app_id}/limits/default", size)
    await page.get_by_label("Streams per user").fill("9")
    for revision in (1, 2):  # The config does not exist at first, and has another revision then.
        await stored(configs, app_id, "limits", "default", {"streams_per_user": revision})
        await save(page)
        refused = page.get_by_role("alert")
        await expect(refused).to_contain_text("Somebody else has saved this config in the meantime")
        assert configs.get(KINDS["limits"], app_id, "default").value.streams_per_user == revision
        await check(page, f"conflict-{revision}-from-{size['width']}")
        await page.set_viewport_size(size)
        await page.get_by_role("button", name="Show what was saved").click()
        await expect(page.get_by_role("note")).to_contain_text(f"Revision {revision} was saved after this draft")
        await expect(page.get_by_label("Streams per user")).to_have_value("9")
    await save(page)
    await expect(page.get_by_text("Saved as revision 3.")).to_be_visible()
    assert configs.get(KINDS["limits"], app_id, "default").value.streams_per_user == 9


@at_both_sizes
async def test_a_restoration_does_not_replace_what_somebody_else_has_saved(
    page: Page,
    configs: ConfigStore,
    apps: list[str],
    size: ViewportSize,
    page_faults: PageFaults,
) -> None:
    page_faults.expected = ["404", "412"]
    app_id = apps[0]
    await stored(configs, app_id, "apps", "default", {})
    await stored(configs, app_id, "limits", "default", {"streams_per_user": 1})
    await configs.delete(ConfigKey(app_id, "limits", "default"), author="bea", origin=COMMAND)
    await open_config(page, f"{app_id}/limits/default", size)
    await page.get_by_role("button", name="History").click()
    await page.get_by_role("button", name="Restore revision 1").click()
    await stored(configs, app_id, "limits", "default", {"streams_per_user": 2})
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Why").fill("Still needed")
    await dialog.get_by_role("button", name="Restore revision 1").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Somebody else has saved this config in the meantime")
    assert configs.get(KINDS["limits"], app_id, "default").value.streams_per_user == 2
