"""HAProxy in front of the nodes, with the shipped configuration, and in front of the stores."""

import shutil
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from bench.nodes.network import hub
from deploy.running import Failed, running
from deploy.stores import Stores

NODE_HEADER = "X-Node"
_CONFIG = Path(__file__).parents[2] / "deploy" / "haproxy.cfg"
_STORES = """
defaults
    mode tcp
    timeout connect 5s
    timeout client 1d
    timeout server 1d
listen postgres
    bind {postgres}:5432
    server postgres unix@{postgres_socket}
listen valkey
    bind {valkey}:6379
    server valkey unix@{valkey_socket}
"""


@asynccontextmanager
async def node_proxy(folder: Path, nodes: Mapping[str, str]) -> AsyncIterator[Process]:
    """Run HAProxy on port 80. `nodes`: addresses by name. Responses say which node they are from."""
    backend = "    default_backend parley\n"
    text = _edited(
        {
            "    server parley1 127.0.0.1:8080\n": "".join(
                f"    server {name} {at}\n" for name, at in nodes.items()
            ),
            "    maxconn 32768\n": "",  # The default follows the limit of open files.
            "gt 1000 }": "gt 1000000 }",  # All clients have one address.
            backend: f"    http-response set-header {NODE_HEADER} %s\n{backend}",
        }
    )
    async with _haproxy(folder / "haproxy.cfg", text) as process:
        yield process


@asynccontextmanager
async def store_relay(folder: Path, stores: Stores) -> AsyncIterator[Process]:
    """Pass connections from the networks of the stores on to their Unix sockets."""
    sockets = parse_qs(urlsplit(stores.database_url).query)["host"][0]
    text = _STORES.format(
        postgres=hub("postgres"),
        postgres_socket=f"{sockets}/.s.PGSQL.5432",
        valkey=hub("valkey"),
        valkey_socket=urlsplit(stores.redis_url).path,
    )
    async with _haproxy(folder / "stores.cfg", text) as process:
        yield process


def _edited(edits: Mapping[str, str]) -> str:
    text = _CONFIG.read_text()
    for old, new in edits.items():
        if text.count(old) != 1:
            raise Failed(f"{old.strip()} must stand once in {_CONFIG}")
        text = text.replace(old, new)
    return text


def _program(config: Path, text: str) -> list[str]:
    """Write the configuration, and return the command that runs HAProxy with it."""
    program = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if program is None:
        raise Failed("haproxy is not installed")
    config.write_text(text)
    return [program, "-db", "-f", str(config)]


@asynccontextmanager
async def _haproxy(config: Path, text: str) -> AsyncIterator[Process]:
    command = _program(config, text)
    with config.with_suffix(".log").open("ab") as output:
        async with running(command, stdout=output, stderr=output) as process:
            yield process
