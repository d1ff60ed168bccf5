"""The compiler of the TypeScript client, for programs that use the client as apps do."""

import shutil
import subprocess
from pathlib import Path

from streams.wire.codec import dumps
from tests.clients.typescript.conftest import CLIENT

_COMPILE_S = 120
_OPTIONS = {
    "strict": True,
    "module": "NodeNext",
    "target": "ES2022",
    "typeRoots": [str(CLIENT / "node_modules/@types")],
    "types": ["node"],
    "allowImportingTsExtensions": True,
    "erasableSyntaxOnly": True,
    "noEmit": True,
}


def check_types(folder: Path, **options: bool) -> None:
    """Compile the programs of a folder in which the client is installed, with the types of Node. Emit nothing."""
    (folder / "tsconfig.json").write_bytes(dumps({"compilerOptions": {**_OPTIONS, **options}}))
    compiler = [shutil.which("node") or "node", CLIENT / "node_modules/.bin/tsc"]
    done = subprocess.run(compiler, cwd=folder, capture_output=True, timeout=_COMPILE_S, check=False, text=True)
    assert done.returncode == 0, done.stdout
