"""What Chromium opens for values of variables, compared with what an email accepts."""

from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.async_api import Browser, Page

from app.mail_urls import leads_elsewhere
from tests.app.mail.written_urls import FOREIGN, HOST, PLAIN, opens_elsewhere

_OPENED = """values => values.map(value => {
  const opened = new Set();
  for (const base of [undefined, "http://base.invalid/", "https://base.invalid/"]) {
    let url;
    try { url = new URL(value, base); } catch { continue; }
    const isSpecial = ["http:", "https:", "ftp:", "ws:", "wss:", "file:"].includes(url.protocol);
    if (isSpecial && url.host && url.host !== "base.invalid") opened.add(`${url.protocol}//${url.host}`);
  }
  return [...opened].sort();
})"""
_PIECES = [
    *(
        "https:",
        "http:",
        "https://",
        "http://",
        "HTTPS://",
        "//",
        "/",
        "\\",
        "\\\\",
        "ftp:",
        "ws:",
        "file:",
        "foo:",
    ),
    *(
        "javascript:",
        "data:",
        "mailto:",
        "blob:",
        "good.example",
        "evil.example",
        "evil",
        "com",
        "www.",
        "x",
        "see ",
    ),
    *("@", ":", "?", "#", ".", "..", "-", "_", ":443", ":8443", "0x7f.1", "[::1]", "127.1", "%2e", "%40", "%2f"),
    *("\t", "\n", "\r", " ", "\x01", "\x0b", "\u2028", "\u3000", "\u3002", "\uff0e", "\uff0f", "\u00ad", "\u200b"),
    *(
        "\u200d",
        "\ufeff",
        "\u202e",
        "\u2024",
        "\u2100",
        "\u00df",
        "\u00e9",
        "\u4f60",
        "\U0001f600",
        '"',
        "'",
        "<",
        ">",
    ),
    *("|", "^", "`", "{", "}", "(", ")", "[", "]", ",", ";", "!", "*", "$", "&", "=", "~", "+"),
]
_VALUES = st.lists(st.sampled_from(_PIECES), min_size=2, max_size=9).map("".join)


@pytest.fixture
async def page(chromium: Browser) -> AsyncIterator[Page]:
    context = await chromium.new_context()
    yield await context.new_page()
    await context.close()


async def test_the_table_says_what_chromium_opens(page: Page):
    rows = [*FOREIGN, *PLAIN]
    opened = await page.evaluate(_OPENED, [row.value for row in rows])
    assert [(row.value, now) for row, now in zip(rows, opened, strict=True) if now != sorted(row.opened)] == []


@pytest.mark.soak
async def test_nothing_that_chromium_opens_at_another_host_passes(page: Page):
    generated: list[str] = []

    @settings(max_examples=300, database=None, suppress_health_check=list(HealthCheck))
    @given(values=st.lists(_VALUES, min_size=20, max_size=20))
    def generate(values: list[str]) -> None:
        generated.extend(values)

    generate()
    opened = await page.evaluate(_OPENED, generated)
    foreign = [value for value, urls in zip(generated, opened, strict=True) if opens_elsewhere(urls)]
    assert len(foreign) > len(generated) / 50
    assert [value for value in foreign if not leads_elsewhere(value, [HOST])] == []
