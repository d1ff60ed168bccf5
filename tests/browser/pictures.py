"""Pictures of pages, which are stored for a person to look at. No test depends on them."""

from playwright.async_api import Error, Page

from tests.code.source_files import ROOT

FOLDER = ROOT / "build" / "screenshots"
_WITHIN_MS = 5_000
"""A busy machine may draw a page late. The test continues without its picture then."""


async def keep_picture(page: Page, name: str) -> None:
    """Store what is visible of the page now. Prints why a picture could not be taken, and never fails the test."""
    try:
        await page.screenshot(path=FOLDER / f"{name}.png", timeout=_WITHIN_MS)
    except (Error, OSError) as error:
        print(f"no picture {name}: {error}")  # noqa: T201 - shown if the test fails
