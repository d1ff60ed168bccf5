"""Forked processes of the tests react to signals as processes with a new interpreter do."""

import subprocess
import sys

_SIGNAL_NEW_PROCESSES = """
import asyncio, os, signal, sys
from bench.forked_children import fork_children

async def exit_code():
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "app", "serve", env=os.environ)
    process.send_signal(signal.SIGTERM)
    return await process.wait()

async def main():
    fork_children()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, print, "the parent was called")
    print({await exit_code() for _ in range(50)})

asyncio.run(main())
"""


def test_signal_ends_a_forked_process_whose_parent_handles_it() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _SIGNAL_NEW_PROCESSES], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.stdout, ended.stderr) == ("{-15}\n", "")
