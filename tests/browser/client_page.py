"""An empty page of the server's origin that uses the TypeScript client, as the pages of the server load it."""

from typing import Any

from playwright.async_api import Page, Route

from streams.wire.codec import dumps
from tests.browser.talk_page import TalkPage

_EMPTY = "/empty"
_EXAMPLE = "/example"
_BUNDLE = "/static/client/parley-client.js"
_IMPORTS = dumps({"imports": {"parley-client": _BUNDLE, "parley-client/audio": _BUNDLE}}).decode()
_SETUP = """async ([url, options]) => {
    const parley = await import("/static/client/parley-client.js");
    const client = new parley.ParleyClient(url);
    await client.signIn("device", { id: crypto.randomUUID() });
    const seen = { states: [], inputs: [], ends: [], errors: [], turns: [] };
    const { voice: wanted = {}, microphone, ...converse } = options;
    const voice = new parley.VoiceChat({
        client,
        options: converse,
        ...wanted,
        ...(microphone && { microphone: new parley.Microphone(microphone) }),
        onState: (state) => seen.states.push(state),
        onTurn: (turn) => seen.turns.push(turn),
        onError: (error) => seen.errors.push(error.kind ?? error.errorType ?? String(error)),
        onEvent: ({ name, content }) => {
            if (name === "user_input") seen.inputs.push(content);
            if (name === "end") seen.ends.push(content.finish_reason);
        },
    });
    Object.assign(window, { parley, client, voice, shown: seen });
}"""
_SHOWN = "() => ({ ...window.shown, turns: window.shown.turns.length })"


async def open_client(talk: TalkPage, **options: Any) -> Page:
    """Open the page with a `VoiceChat`. Its options are those of turns, `voice` for itself, and `microphone`."""
    page = talk.page
    await page.route(f"**{_EMPTY}", _deliver)
    await page.goto(f"{talk.server.url}{_EMPTY}")
    await page.evaluate(_SETUP, [talk.server.url, {"languageCode": "en-US", **options}])
    return page


async def shown(page: Page) -> dict[str, Any]:
    """Return what the `VoiceChat` has reported."""
    return await page.evaluate(_SHOWN)


async def until(page: Page, condition: str) -> None:
    """Wait until an expression of `voice` and `shown` is true."""
    await page.wait_for_function(condition)


async def open_example(talk: TalkPage, html: str, script: str) -> None:
    """Open a page that loads `script` as `voice.js`, and the client by the names of the package."""
    begin = f'<!doctype html><script type="importmap">{_IMPORTS}</script>'
    await talk.page.route(f"**{_EXAMPLE}", lambda route: route.fulfill(body=begin + html, content_type="text/html"))
    await talk.page.route("**/voice.js", lambda route: route.fulfill(body=script, content_type="text/javascript"))
    await talk.page.goto(f"{talk.server.url}{_EXAMPLE}")


async def _deliver(route: Route) -> None:
    await route.fulfill(body="<!doctype html><title>A page</title>", content_type="text/html")
