"""Checks the accessibility of a page with axe-core."""

import gzip
import hashlib
from functools import cache
from pathlib import Path

from playwright.async_api import Page

from streams.wire.codec import loads

_FOLDER = Path(__file__).parent / "axe"
_SERIOUS = {"serious", "critical"}
_RULES_OF_COLORS = ["color-contrast", "link-in-text-block"]
"""The rules whose results depend on the theme."""
_RUN = """async (rules) => {
    const changing = document.getAnimations().filter((animation) => animation instanceof CSSTransition);
    await Promise.allSettled(changing.map(({ finished }) => finished));
    const options = { resultTypes: ["violations"], ...(rules && { runOnly: rules }) };
    const { violations } = await axe.run(document, options);
    return violations.map(({ id, impact, nodes }) =>
        ({ id, impact, where: nodes.map(({ target, failureSummary }) => `${target}: ${failureSummary}`) }));
}"""


@cache
def _axe() -> str:
    script = gzip.decompress((_FOLDER / "axe.js.gz").read_bytes())
    assert hashlib.sha256(script).hexdigest() == loads((_FOLDER / "axe.json").read_bytes())["sha256"]
    return script.decode()


async def check_accessibility(page: Page, *, all_violations: bool = False) -> None:
    """Fail if axe-core reports a serious violation, or any at all, in the page as it is now, in dark or light mode.

    The page is in light mode afterwards.
    """
    if not await page.evaluate("() => 'axe' in window"):
        await page.evaluate(_axe())
    for color_scheme, rules in (("dark", _RULES_OF_COLORS), ("light", None)):
        await page.emulate_media(color_scheme=color_scheme)
        found = await page.evaluate(_RUN, rules)
        violations = [each for each in found if all_violations or each["impact"] in _SERIOUS]
        assert not violations, "\n".join(f"{each['id']} in {color_scheme}: {each['where']}" for each in violations)
