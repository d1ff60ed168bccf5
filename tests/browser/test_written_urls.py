"""What Chromium opens for values of variables, compared with what an email accepts."""

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.async_api import Browser, Page, Request, Route

from app.mail_urls import leads_elsewhere
from tests.app.mail.written_urls import FOREIGN, HOST, PLAIN, opens_elsewhere
from tests.waiting import until

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
_SCRIPTS_IN = """values => [...values.keys()].filter(index => {
  try { return new URL(values[index]).protocol === "javascript:"; } catch { return false; }
})"""
_HOSTILE = "<script>location='https://evil.example/'</script>"
"""What an opener of the page chose as its name, and another variable shows as text."""
_LAST = "javascript: location='https://last.example/'"
_FOLLOWED = """async ([values, hostile]) => {
  const frames = await Promise.all(values.map((value, index) => new Promise(resolve => {
    const frame = document.createElement("iframe");
    frame.name = hostile + index;
    frame.onload = () => { frame.onload = null; resolve(frame); };
    frame.srcdoc = "<body><p></p><a>x</a>";
    document.body.append(frame);
  })));
  frames.forEach((frame, index) => {
    frame.contentDocument.querySelector("p").textContent = hostile;
    const link = frame.contentDocument.querySelector("a");
    link.href = values[index];
    link.click();
  });
}"""
"""Follow links, each in a frame of its own."""
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
_CODE = [
    *(
        "javascript:",
        "JavaScript: ",
        "name",
        "document",
        "body",
        "textContent",
        "location",
        "open",
        "see",
        "let",
        "new",
    ),
    *(
        "'",
        '"',
        "`",
        ".",
        "?",
        ":",
        ",",
        ";",
        "!",
        "-",
        "&",
        "%",
        " ",
        "\t",
        "1",
        "if",
        "https:evil",
        "\\x3c",
        "(",
        ")",
    ),
    *("%3c", "=", "+", "$", "{", "}", "/", "\u3000", "\u2028", "\u00e9", "`https:evil`", "assign", "0"),
]
_SCRIPTS = st.lists(st.sampled_from(_CODE), min_size=1, max_size=7).map(lambda code: "javascript:" + "".join(code))
_VALUES = st.lists(st.sampled_from(_PIECES), min_size=2, max_size=9).map("".join)


@pytest.fixture
async def page(chromium: Browser) -> AsyncIterator[Page]:
    context = await chromium.new_context()
    await context.route("**/*", _answer)
    yield await context.new_page()
    await context.close()


async def _answer(route: Route) -> None:
    await route.fulfill(body="<!doctype html><body>", content_type="text/html")


async def _opened(page: Page, values: list[str]) -> list[list[str]]:
    """Return what Chromium opens for each value, also by the scripts in it."""
    opened: list[list[str]] = await page.evaluate(_OPENED, values)
    scripts: list[int] = await page.evaluate(_SCRIPTS_IN, values)
    for some in (scripts[start : start + 100] for start in range(0, len(scripts), 100)):
        for index, urls in zip(some, await _run(page, [values[index] for index in some]), strict=True):
            opened[index] = sorted({*opened[index], *urls})
    return opened


async def _run(page: Page, scripts: list[str]) -> list[set[str]]:
    """Return the hosts that `javascript:` URLs open. The last one shows that all have run."""
    opened: list[set[str]] = [set() for _ in [*scripts, _LAST]]

    def keep(request: Request) -> None:
        url, name = urlsplit(request.url), request.frame.name
        if name.startswith(_HOSTILE) and url.hostname != "base.invalid":
            opened[int(name.removeprefix(_HOSTILE))].add(f"{url.scheme}://{url.netloc}")

    await page.goto("http://base.invalid/")
    page.on("request", keep)
    await page.evaluate(_FOLLOWED, [[*scripts, _LAST], _HOSTILE])
    await until(lambda: opened[-1])
    page.remove_listener("request", keep)
    return opened[:-1]


async def test_the_table_says_what_chromium_opens(page: Page):
    rows = [*FOREIGN, *PLAIN]
    opened = await _opened(page, [row.value for row in rows])
    assert [(row.value, now) for row, now in zip(rows, opened, strict=True) if now != sorted(row.opened)] == []


@pytest.mark.soak
async def test_nothing_that_chromium_opens_at_another_host_passes(page: Page):
    generated: list[str] = []

    @settings(max_examples=300, database=None, suppress_health_check=list(HealthCheck))
    @given(values=st.lists(_VALUES | _SCRIPTS, min_size=20, max_size=20))
    def generate(values: list[str]) -> None:
        generated.extend(values)

    generate()
    opened = await _opened(page, generated)
    foreign = [value for value, urls in zip(generated, opened, strict=True) if opens_elsewhere(urls)]
    assert len(foreign) > len(generated) / 50
    assert [value for value in foreign if not leads_elsewhere(value, [HOST])] == []
