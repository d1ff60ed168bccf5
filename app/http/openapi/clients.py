"""Whole programs around one call of a client, as examples in TypeScript and Python."""

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_SIGN_INS = ("signIn", "signUp", "sign_in", "sign_up")
_IMPORTS = {"datetime(": "from datetime import UTC, datetime", "Path(": "from pathlib import Path"}
"""What the standard library has, in Python."""
_ID = "an id that the app has made and keeps"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a client: its code, with `client`, `server` or `user` as the names of what it calls."""

    code: str
    url: str
    of_server: bool

    @property
    def signs_in(self) -> bool:
        """Whether the call itself is the sign-in."""
        return any(name in self.code for name in _SIGN_INS)

    @property
    def of_user(self) -> bool:
        """Whether the app's server acts for a user."""
        return "user." in self.code


def _typescript(call: Call) -> str:
    if call.of_server:
        lines = [
            'import { ServerClient } from "parley-client/server";',
            "",
            'const key = "the secret of one of the app\'s server_keys";',
            f'const url = "{call.url}";',
            'const server = new ServerClient(url, "default", { kid: "development", alg: "HS256", key });',
            *(['const user = server.user("the id of a user");'] if call.of_user else []),
        ]
    else:
        sign_in = f'await client.signIn("device", {{ id: "{_ID}" }});'
        lines = [
            'import { ParleyClient } from "parley-client";',
            "",
            f'const client = new ParleyClient("{call.url}");',
            *([] if call.signs_in else [sign_in]),
        ]
    return "\n".join([*lines, call.code])


def _python(call: Call) -> str:
    names = ["ServerClient", "ServerKey"] if call.of_server else ["ParleyClient"]
    if "TextChunk" in call.code:
        names.append("TextChunk")
    if call.of_server:
        opening = [
            'key = ServerKey("development", "HS256", "the secret of one of the app\'s server_keys")',
            f'async with ServerClient("{call.url}", "default", key) as server:',
        ]
        first = ['user = server.user("the id of a user")'] if call.of_user else []
    else:
        opening = [f'async with ParleyClient("{call.url}") as client:']
        first = [] if call.signs_in else [f'await client.sign_in("device", {{"id": "{_ID}"}})']
    inner = textwrap.indent("\n".join([*first, call.code]), "    ")
    body = textwrap.indent("\n".join([*opening, inner]), "    ")
    imports = "".join(f"{line}\n" for name, line in _IMPORTS.items() if name in call.code)
    return (
        f"import asyncio\n{imports}\nfrom parley_client import {', '.join(sorted(names))}\n\n\n"
        f"async def main() -> None:\n{body}\n\n\nasyncio.run(main())"
    )


SAMPLES: Mapping[str, Callable[[Call], str]] = {"typescript": _typescript, "python": _python}
"""The program around a call, by language."""
