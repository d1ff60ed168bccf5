"""`python -m vendors.sandbox`: run the sandbox as a separate process, or control a running one.

The process prints one line of JSON when it listens. SIGTERM and SIGINT end it.
"""

import argparse
import asyncio
import signal
import sys
from typing import Any

import aiohttp
import uvloop

from streams.wire.codec import dumps
from vendors.sandbox.faults import Fault

_PORT = 8099


def main() -> None:
    options = _options()
    try:
        uvloop.run(_serve(options) if options.command is None else _control(options))
    except aiohttp.ClientConnectionError:
        sys.exit(f"no sandbox listens on {options.url}: start one with `python -m vendors.sandbox`")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m vendors.sandbox",
        description="Emulates the protocols of vendors on this machine, including their faults.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=int, default=_PORT, help="port to listen on; 0 for a free one (default: %(default)s)"
    )
    commands = parser.add_subparsers(dest="command", metavar="fault | clear | calls")
    url = argparse.ArgumentParser(add_help=False)
    url.add_argument(
        "--url", default=f"http://127.0.0.1:{_PORT}", help="URL of the running sandbox (default: %(default)s)"
    )
    fault = commands.add_parser("fault", parents=[url], help="switch on a fault of a vendor")
    fault.add_argument("vendor")
    fault.add_argument("fault", choices=[str(fault) for fault in Fault], metavar="fault", help=", ".join(Fault))
    fault.add_argument("--rate", type=float, default=1.0, help="share of calls that have the fault (default: 1)")
    fault.add_argument(
        "--position",
        default="after",
        help="`before` or `after` the first output, or a number of outputs (default: %(default)s)",
    )
    clear = commands.add_parser("clear", parents=[url], help="switch off the fault of a vendor, or all faults")
    clear.add_argument("vendor", nargs="?")
    commands.add_parser(
        "calls",
        parents=[url],
        help="list the received calls and what a vendor would have billed, one call per line",
    )
    return parser.parse_args()


async def _serve(options: argparse.Namespace) -> None:
    from vendors.sandbox.server import listening  # noqa: PLC0415 - slow to import, and the commands do not need it

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with listening(host=options.host, port=options.port) as running:
        urls = {"listening": running.url, "broken_tls": running.broken_tls_url, "inbox": running.inbox_url}
        line = dumps(urls).decode()
        print(line, flush=True)
        await stop.wait()


async def _control(options: argparse.Namespace) -> None:
    async with aiohttp.ClientSession(options.url.rstrip("/") + "/", raise_for_status=_exit_with_error) as http:
        match options.command:
            case "fault":
                position = int(options.position) if options.position.isdecimal() else options.position
                given = {"fault": options.fault, "rate": options.rate, "position": position}
                await http.post("_sandbox/faults", data=dumps({"vendor": options.vendor, **given}))
                print(f"{options.vendor}: {options.fault} in {options.rate:.0%} of calls, position: {position}")
            case "clear":
                await http.delete("_sandbox/faults", params={"vendor": options.vendor} if options.vendor else {})
                print(f"{options.vendor or 'all vendors'}: no fault")
            case _:
                calls: dict[str, Any] = await (await http.get("_sandbox/calls")).json()
                for call in calls["calls"]:
                    print(dumps(call).decode())


async def _exit_with_error(response: aiohttp.ClientResponse) -> None:
    if response.status >= 400:
        sys.exit(f"the sandbox responded with {response.status}: {await response.text()}")


if __name__ == "__main__":
    main()
