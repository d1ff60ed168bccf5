"""The guides for Kotlin, Swift and Unity agree with the server, as far as this can be seen without compilers."""

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from app.routes import ROUTES
from streams.events import Event
from tests.code.source_files import FILES, ROOT

PAGES = {"kotlin": "kotlin", "swift": "swift", "unity": "csharp"}
"""The pages, and the language of their code."""
HEADERS = {
    "Idempotency-Key",
    "Last-Event-ID",
    "Retry-After",
    "X-Service-App-Id",
    "X-Service-Session-Token",
    "X-Service-Sign",
    "X-Service-Stream-Id",
}
PATHS = {"/bp/user/login", "/bp/ai/conversation", "/bp/ai/stream/{}"}
EVENTS = {
    "ping",
    "error",
    "end",
    "user_input",
    "assistant_output_chunk",
    "assistant_output_restart",
    "assistant_output_audio_chunk",
}
SIGNED_LINES = (r"(String\()?t\b.*", "nonce", r"method\.\w*upper\w*\(\)", "target", r"(?=.*\bbody\b).*sha256.*")
JOINED = ('joinToString("\\n")', 'joined(separator: "\\n")', 'string.Join("\\n", new[]')
NO_REDIRECTS = ("followRedirects(false)", "willPerformHTTPRedirection", "redirectLimit = 0;")
PARSERS = {"swift": ("swiftc", "-parse"), "csharp": ("mcs", "-parse")}
"""Compilers that read a file without the libraries that it uses. That of Kotlin cannot."""
ENDINGS = {"swift": "swift", "csharp": "cs"}
CLOSING = {")": "(", "]": "[", "}": "{"}
_STRING = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_VARIABLE = re.compile(r"\\\(\w+\)|\$\w+|\{[\w.]+\}")
_HEADER = re.compile(r"\"(X-Service-[A-Za-z-]+)\"")


@cache
def blocks(page: str) -> list[str]:
    text = (ROOT / "docs" / "guides" / f"{page}.md").read_text()
    return re.findall(rf"^```{PAGES[page]}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def code(page: str) -> str:
    return "\n".join(blocks(page))


def literals(page: str) -> set[str]:
    return {literal[1:-1] for literal in _STRING.findall(_COMMENT.sub("", code(page).replace("://", "")))}


def brackets(source: str) -> list[str]:
    """Return the brackets that are open at the end. Raises `AssertionError` for one that closes another."""
    opened: list[str] = []
    for sign in re.findall(r"[()\[\]{}]", _COMMENT.sub("", _STRING.sub("", source))):
        if sign in CLOSING:
            assert opened, sign
            assert opened.pop() == CLOSING[sign]
        else:
            opened.append(sign)
    return opened


def signed_lines(source: str) -> list[str]:
    """Return the parts that `sign` joins, and what follows them."""
    lines = source[source.index("text = ") :].splitlines()
    first = next(number for number, line in enumerate(lines) if line.endswith(","))
    return [line.strip().removesuffix(",") for line in lines[first : first + 6]]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_calls_paths_of_the_server(page: str) -> None:
    found = {literal.partition("?")[0] for literal in literals(page) if literal.startswith("/bp/")}
    known = {re.sub(r"\{\w+\}", "{}", row.path) for row in ROUTES}
    assert {_VARIABLE.sub("{}", path) for path in found} == PATHS
    assert known >= PATHS


@pytest.mark.parametrize("page", PAGES)
def test_a_page_uses_headers_of_the_server(page: str) -> None:
    served = {header for path in FILES for header in _HEADER.findall(path.read_text())}
    used = literals(page)
    assert used >= HEADERS
    assert {header for header in used if header.startswith("X-")} <= served


@pytest.mark.parametrize("page", PAGES)
def test_a_page_follows_no_redirect(page: str) -> None:
    """Another host would get the session."""
    assert any(refusal in code(page) for refusal in NO_REDIRECTS)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_handles_events_of_the_server(page: str) -> None:
    sent = {event.name for event in Event.__subclasses__()} | {"ping"}
    used = literals(page)
    assert used >= EVENTS
    assert {name for name in used if name.startswith("assistant_")} <= sent
    assert sent >= EVENTS


@pytest.mark.parametrize("page", PAGES)
def test_a_page_signs_the_documented_lines_in_their_order(page: str) -> None:
    *parts, end = signed_lines(code(page))
    for pattern, part in zip(SIGNED_LINES, parts, strict=True):
        assert re.fullmatch(pattern, part, re.IGNORECASE), part
    assert end[0] in CLOSING
    assert any(join in code(page) for join in JOINED)


@pytest.mark.parametrize("page", PAGES)
def test_the_brackets_of_each_block_match(page: str) -> None:
    assert [brackets(block) for block in blocks(page)] == [[] for _ in blocks(page)]
    assert len(blocks(page)) >= 2


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_what_was_not_compiled(page: str) -> None:
    assert "**This code was not compiled or run" in (ROOT / "docs" / "guides" / f"{page}.md").read_text()


@pytest.mark.parametrize(("page", "language"), [item for item in PAGES.items() if item[1] in PARSERS])
def test_a_compiler_can_read_each_block(page: str, language: str, tmp_path: Path) -> None:
    parser = PARSERS[language]
    if shutil.which(parser[0]) is None:
        pytest.skip(f"{parser[0]} is not installed")
    for number, block in enumerate(blocks(page)):
        path = tmp_path / f"block{number}.{ENDINGS[language]}"
        path.write_text(block)
        done = subprocess.run([*parser, str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + done.stdout


def test_brackets_and_parts_that_are_wrong_are_found() -> None:
    assert brackets("f({") == ["(", "{"]
    assert brackets('f(")") // (') == []
    with pytest.raises(AssertionError):
        brackets("f(]")
    assert signed_lines("text = [\n  nonce,\n  t,\n]")[:2] == ["nonce", "t"]
