"""The talk page, its static files and its list of strategies, as a browser receives them."""

import hashlib
import json  # noqa: TID251 - an independent reader
import re
from dataclasses import replace
from posixpath import normpath
from typing import Any

import pytest

from app.http.callers.tokens import make_server_token
from app.pages.assets import STATIC
from app.settings import Settings
from storage.operators.audit import COMMAND
from tests.app.reference import check
from tests.running.servers import SERVER_KEY, Server

OFFERS = "/bp/ai/offers"
VENDORED = sorted((STATIC / "vendor").glob("*.json"), key=lambda path: path.name)
TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
IN_PRODUCTION = pytest.mark.parametrize("settings", ["production"], indirect=True)


@pytest.fixture
def settings(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    """The settings of the environment that the test names, or with its changes."""
    param = getattr(request, "param", {})
    return replace(settings, **({"env": param} if isinstance(param, str) else param))


async def get(server: Server, path: str, **headers: str) -> tuple[int, Any]:
    async with server.http.get(server.url + path, headers=headers) as response:
        answer = await response.read()
        return response.status, json.loads(answer) if response.content_type == "application/json" else answer


async def offers(server: Server) -> tuple[int, Any]:
    _, token = await server.login()
    return await get(server, OFFERS, **{"X-Service-Session-Token": token})


async def is_hidden(server: Server, *paths: str) -> bool:
    """Return whether all paths are answered like unknown ones. The message repeats the path."""
    answers = [await get(server, path) for path in ("/nothing", *paths)]
    messages = [answer["error"].pop("message").partition(": /")[0] for _, answer in answers]
    return {*messages} == {"not_found: there is no such path"} and answers == [
        (404, {"error": {"error_type": "not_found"}})
    ] * len(answers)


async def put(server: Server, kind: str, name: str, value: dict[str, Any], app_id: str = "default") -> None:
    await server.services.configs.put(app_id, kind, name, value, author="test", origin=COMMAND)


async def test_the_page_may_only_load_from_and_connect_to_this_server(server: Server) -> None:
    async with server.http.get(f"{server.url}/") as response:
        assert (response.status, response.content_type) == (200, "text/html")
        policy = dict(rule.split(" ", 1) for rule in response.headers["Content-Security-Policy"].split("; "))
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        page = await response.text()
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "media-src": "'self' blob:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert not re.search(r"<style|<script(?! type=\"module\" src=)|\s(?:on\w+|style)=|https?:", page)


async def test_all_files_of_the_page_are_served(server: Server) -> None:
    """Modules and their imports have the content type that browsers require."""
    _, page = await get(server, "/")
    found = re.findall(r'(?:src|href)="(static/[^"]+)"', page.decode())
    assert {"static/talk/page.js", "static/talk/style.css"} <= set(found)
    for path in found:  # The list grows meanwhile.
        async with server.http.get(f"{server.url}/{path}") as response:
            assert response.status == 200, path
            kind = TYPES[path.rpartition(".")[2]]
            assert response.content_type == kind
            text = await response.text()
        if kind == "text/javascript":
            folder = path.rpartition("/")[0]
            for name in re.findall(r'(?:from|new URL\()\s?"(\.{0,2}[\w./-]+\.js)"', text):
                one = normpath(f"{folder}/{name}")
                found += [one] if one not in found else []
    assert {"static/client/worklet.js", "static/client/parley-client.js", "static/inside/record.js"} <= set(found)


@pytest.mark.parametrize(
    ("settings", "links", "console"),
    [
        ({"env": "development"}, True, True),
        ({"env": "development", "public_docs": False, "console": False}, False, False),
        ({"env": "production"}, False, False),
        ({"env": "production", "public_docs": True, "console": True}, True, False),
    ],
    indirect=["settings"],
)
async def test_the_page_links_to_what_is_served(server: Server, *, links: bool, console: bool) -> None:
    await put(server, "apps", "default", {"title": "Talkative", "currency": "USD", "playground": True})
    status, page = await get(server, "/")
    assert (status, b'href="/docs"' in page) == (200, links)
    assert ((await get(server, "/docs"))[0] == 200) is links
    assert (b'href="/console"' in page) is console
    assert ((await get(server, "/console"))[0] == 200) is server.services.settings.shows_console
    assert (b'href="/dev/accounts"' in page) is server.services.settings.development
    assert page.rstrip().endswith(b"</html>")
    _, script = await get(server, "/static/talk/page.js")
    assert b"/docs" not in script


async def test_a_part_that_has_not_changed_is_not_sent_again(server: Server) -> None:
    for path in ("/", "/static/talk/page.js", "/static/vendor/preact.js"):
        async with server.http.get(server.url + path) as response:
            tag = response.headers["ETag"]
        assert await get(server, path, **{"If-None-Match": tag}) == (304, b"")


@pytest.mark.parametrize(
    "part",
    [
        "talk/nothing.js",
        "talk/index.html",
        "vendor/preact.json",
        "scalar.js",
        "talk",
        "talk/..%2f..%2fdocs.py",
        "%2e%2e/docs.py",
    ],
)
async def test_other_files_are_not_served(server: Server, part: str) -> None:
    assert await is_hidden(server, f"/static/{part}")


@pytest.mark.parametrize("reported", VENDORED, ids=lambda path: path.stem)
def test_files_of_third_parties_equal_those_of_their_packages(reported) -> None:
    package = json.loads(reported.read_text())
    [kept] = [
        path for path in reported.parent.glob(f"{reported.stem}.*") if path.suffix in {".js", ".css", ".wasm"}
    ]
    assert hashlib.sha256(kept.read_bytes()).hexdigest() == package["sha256"]
    assert package.keys() == {"package", "version", "file", "sha256", "licence"}
    licence = re.search(r"\S+\.LICENSE\.txt", package["licence"])
    assert licence
    assert (reported.parent / licence[0]).stat().st_size > 1000


def test_files_of_third_parties_name_their_origin() -> None:
    kept = {path.stem for path in (STATIC / "vendor").iterdir() if path.suffix in {".js", ".css", ".wasm"}}
    assert kept == {path.stem for path in VENDORED}
    assert {"preact", "eventsource-parser"} <= kept


@IN_PRODUCTION
async def test_in_production_only_apps_with_a_playground_have_the_page(server: Server) -> None:
    parts = ("/", "/static/talk/page.js", "/static/vendor/preact.js")
    assert await is_hidden(server, *parts)
    assert (await offers(server))[0] == 404
    await put(server, "apps", "default", {"title": "Shown", "playground": True})
    assert [(await get(server, part))[0] for part in parts] == [200, 200, 200]
    status, reported = await offers(server)
    assert (status, reported["title"]) == (200, "Shown")


async def test_an_app_can_switch_off_its_page_in_development(server: Server) -> None:
    await put(server, "apps", "default", {"title": "Hidden", "playground": False})
    assert await is_hidden(server, "/", "/static/talk/page.js")
    status, reported = await offers(server)
    assert (status, reported["error"]["error_type"]) == (404, "not_found")


async def test_the_title_of_an_app_is_one_line(server: Server) -> None:
    await put(server, "apps", "default", {"title": "My\r\nown\u2028app\n"})
    _, reported = await offers(server)
    assert reported["title"] == "My own app"


@IN_PRODUCTION
async def test_each_app_has_its_own_page(server: Server) -> None:
    await put(server, "apps", "default", {"playground": True}, app_id="other")
    assert await is_hidden(server, "/", "/?app=default", "/?app=unknown", "/?app=")
    for path in ("/?app=other", "/static/talk/page.js"):
        assert (await get(server, path))[0] == 200


async def test_offers_have_the_capabilities_of_each_strategy(server: Server) -> None:
    for name, platform in (("words", "vendor_b_llm"), ("sound", "vendor_b_audio"), ("azure", "vendor_a_audio")):
        account = {"platform": platform, "base_url": "http://127.0.0.1:9", "api_key": "sk-test"}
        await put(server, "vendor_accounts", name, account)
    chat = {"account": "words", "model": "gpt-4o-mini"}
    await put(server, "recognition", "english", {"account": "sound", "model": "whisper-1", "languages": ["en"]})
    await put(
        server, "speech", "german", {"account": "sound", "model": "tts-1", "voice": "alloy", "languages": ["de-DE"]}
    )
    await put(
        server, "pronunciation", "azure", {"accounts": [{"account": "azure"}], "languages": ["en-US", "fr-FR"]}
    )
    await put(server, "conversation", "whole", {"chat": chat, "recognition": "english", "speech": "german"})
    await put(server, "conversation", "typed", {"chat": chat})
    await put(server, "conversation", "mute", {"chat": chat, "recognition": "gone", "speech": "gone"})
    await put(server, "conversation", "broken", {"chat": {"account": "nobody"}})
    status, reported = await offers(server)
    assert (status, reported["title"]) == (200, "Development")
    found = {
        kind: {one["name"]: one for one in reported[kind]} for kind in ("conversation", "speech", "pronunciation")
    }
    assert found["conversation"]["whole"] == {
        "name": "whole",
        "hears": True,
        "heard_languages": ["en"],
        "speaks": True,
        "spoken_languages": ["de-DE"],
    }
    assert found["conversation"]["typed"] == {"name": "typed", "hears": False, "speaks": False}
    assert found["conversation"]["mute"] == {"name": "mute", "hears": False, "speaks": False}
    fault = found["conversation"]["broken"].pop("fault")
    assert found["conversation"]["broken"] == {"name": "broken", "hears": False, "speaks": False}
    assert fault == "config_invalid: vendor_accounts nobody does not exist"
    assert found["speech"]["german"] == {"name": "german", "languages": ["de-DE"]}
    assert found["pronunciation"]["azure"] == {"name": "azure", "languages": ["en-US", "fr-FR"]}


async def test_strategies_of_missing_engines_are_listed_as_broken(server: Server) -> None:
    _, reported = await offers(server)
    for kind in ("conversation", "speech", "pronunciation"):
        [local] = [one for one in reported[kind] if one["name"] == "local"]
        assert local["fault"].startswith("config_invalid: vendor_accounts local-"), kind


async def test_a_browser_gets_a_readable_error_if_an_app_has_no_page(server: Server) -> None:
    await put(server, "apps", "default", {"title": "Hidden", "playground": False})
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    hidden, unknown = [await get(server, path, **browser) for path in ("/", "/?app=nosuch")]
    assert hidden == unknown
    assert hidden[0] == 404
    assert b"<h1>Page not found</h1>" in hidden[1]
    assert b"setting playground" in hidden[1]
    assert b'<header class="page-bar">' in hidden[1]


@IN_PRODUCTION
async def test_a_page_needs_an_app_that_requires_no_signatures(server: Server) -> None:
    """The guide to the talk page documents this."""
    await put(server, "apps", "default", {"playground": True}, app_id="own")
    device = {"device": {"id": "browser-1"}}
    statuses = []
    for _ in range(2):
        headers = {"X-Service-App-Id": "own"}
        async with server.http.post(f"{server.url}/bp/user/login", json=device, headers=headers) as response:
            statuses.append(response.status)
        await put(server, "auth", "default", {"require_sign": False}, app_id="own")
    assert statuses[0] >= 400
    assert statuses[1] == 200


@IN_PRODUCTION
async def test_an_app_server_may_always_list_the_offers(server: Server) -> None:
    uid, _ = await server.login()
    token = make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default")
    status, reported = await get(server, f"/bp/server/user/{uid}/ai/offers", **{"X-Service-Auth-Token": token})
    assert status == 200
    assert {one["name"] for one in reported["conversation"]} == {"local", "scripted", "scripted-text"}


async def test_offers_match_the_schema_of_the_reference(server: Server) -> None:
    _, document = await get(server, "/openapi.json")
    responses = document["paths"][OFFERS]["get"]["responses"]
    _, reported = await offers(server)
    check(document, responses["200"]["content"]["application/json"]["schema"], reported)
    assert "404" in responses


async def test_offers_need_a_session(server: Server) -> None:
    status, reported = await get(server, OFFERS)
    assert (status, reported["error"]["error_type"]) == (400, "account.invalid_session")
