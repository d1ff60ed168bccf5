"""The text that `make run` prints when everything is ready, with requests to try."""

import sys
from collections.abc import Mapping
from pathlib import Path
from shlex import quote

from aiohttp import ClientSession

from app.dev.console import console_link
from app.environment import own_url
from app.http.callers.tokens import make_server_token
from app.settings import Settings
from deploy.engines import Engines
from deploy.seeds import SIGNED_APP
from storage.secrets import Keyring
from streams.wire.codec import dumps

OPERATOR_FILE = "admin-token"
SERVER_KEY_FILE = "server-key"
_DEVICE = "make-run"
_CLONE = Path(__file__).resolve().parent.parent

_TEXT = """
# Parley listens on {url}
#
# Next steps:
#   1. Talk to it:              {url}
#   2. Build your first app:    {url}/docs/guides/first-app
#   3. Configure and watch it:  {url}{console}
#      (This link to the console signs in once, within an hour.)
#
# More pages:
#   API reference               {url}/docs
#   Every way to log in         {url}/dev/accounts
#   Payments at the sandbox     {url}/dev/payments
#   Leaderboard, image, email   {url}/dev/engagement

# The variables that the guides use: a user of the app `default`, the key of the app `signed`, and this clone
export URL={url} PORT={port}
export USER_ID={uid}
export SESSION={session}
export SERVER={server}
export PARLEY_SANDBOX_URL={sandbox_url}
export APP_ID={signed_app} APP_SIGN_KEY={sign_key}
export CLONE={clone}

# A conversation with streamed text and speech (strategies: local, scripted, scripted-text)
curl -N "$URL/bp/ai/conversation" -H "X-Service-Session-Token: $SESSION" \\
  --data-binary '{converse}Tell me a story about the sea.'

# Speech from text
curl -N "$URL/bp/ai/audio/tts" -H "X-Service-Session-Token: $SESSION" \\
  -d '{speak}'

# A call from your own server on behalf of that user. The token is valid for 10 minutes. To make another one:
# export SERVER=$({python} -m app token make --key {server_key_file} --kid development --alg HS256)
curl "$URL/bp/server/user/$USER_ID" -H "X-Service-Auth-Token: $SERVER"

# A call to the operator's API
curl "$URL/admin/api/configs" -H "Authorization: Bearer {admin_token}"

# Commands that use this server's stores. The parentheses keep its settings out of your shell.
(. {env_file} && {python} -m app users make 1 && {python} -m app config export configs)

{missing}# Warnings and errors are logged below; PARLEY_LOG_LEVEL=info also logs each request. Press Ctrl-C to stop.
"""
"""All of it can be pasted into a shell: what is not a command is a comment."""

_CONVERSE = {
    "strategies": ["scripted"],
    "type": "text",
    "language_code": "en-US",
    "target_language_code": "en-US",
}
_SPEAK = {"strategies": ["local"], "text": "Hello from Parley."}


async def welcome(settings: Settings, engines: Engines, env: Mapping[str, str]) -> str:
    """Log a device in. Return the text, whose requests contain the tokens of that device.

    Its commands have absolute paths, so that they work in any folder. `env`: the environment of the server.
    """
    url = own_url(settings.host, settings.port)
    uid, session = await _login(url)
    return _TEXT.format(
        url=url,
        port=settings.port,
        console=console_link(Keyring.from_hex(settings.master_key.get_secret_value())),
        sandbox_url=env["PARLEY_SANDBOX_URL"],
        session=session,
        server=make_server_token(kid="development", alg="HS256", key=env["PARLEY_SERVER_KEY"], app_id="default"),
        uid=uid,
        signed_app=SIGNED_APP,
        sign_key=quote(env["APP_SIGN_KEY"]),
        clone=quote(str(_CLONE)),
        python=quote(sys.executable),
        env_file=quote(str(settings.data_dir / "env")),
        server_key_file=quote(str(settings.data_dir / SERVER_KEY_FILE)),
        converse=dumps(_CONVERSE).decode(),
        speak=dumps(_SPEAK).decode(),
        admin_token=_shell_expression(settings.data_dir / OPERATOR_FILE, settings.admin_token.get_secret_value()),
        missing="".join(f"# {name} is off: {' '.join(fault.split())}\n" for name, fault in engines.faults.items()),
    )


def _shell_expression(token_file: Path, token: str) -> str:
    """Return the shell expression for the operator's token: a command that reads its file, or a variable."""
    return (
        f"$(cat {quote(str(token_file))})"
        if token_file.exists() and token_file.read_text().strip() == token
        else "$PARLEY_ADMIN_TOKEN"
    )


async def _login(url: str) -> tuple[str, str]:
    async with (
        ClientSession(trust_env=False, raise_for_status=True) as http,
        http.post(f"{url}/bp/user/login", json={"device": {"id": _DEVICE}}) as answer,
    ):
        user = (await answer.json())["user"]
        return user["uid"], user["session"]["session_token"]
