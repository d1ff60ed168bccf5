"""The packed TypeScript client in an empty project: the example of its README, and its types."""

import asyncio
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from streams.wire.codec import dumps, loads
from tests.clients.typescript.conftest import CLIENT, Configure
from tests.running.servers import Server

KEY = "k-apps-" + "k" * 32
COMPILER = CLIENT / "node_modules/.bin/tsc"
CONSUMER = """
import { ParleyClient, type ParleyError } from "parley-client";
import { Microphone, VoiceChat, type VoiceState } from "parley-client/audio";
import { ServerClient, verifyWebhook } from "parley-client/server";

const client = new ParleyClient("http://127.0.0.1:8080");
const uid: string = (await client.signIn("device", { id: "phone" }, { platform: "ios" })).uid;
const turn = client.converse({ strategies: ["one"], text: "Hi", languageCode: "en-US" });
for await (const event of turn) {
  if (event.name === "assistant_output_audio_chunk") new Uint8Array(event.bytes);
  if (event.name === "end") event.content.digest.chars.toFixed();
}
export const quantity: number = (await client.assets())[0]!.quantity;
export const wait = (error: ParleyError): number | null => error.retryAfter;
const server = new ServerClient("http://127.0.0.1:8080", "default", { kid: "a", alg: "HS256", key: "s" });
await server.user(uid).withdraw("w-1", 10, { startTime: new Date() });
verifyWebhook(new Headers(), "{}", ["whsec_AAAA"]).data;
const microphone = new Microphone({ echoCancellation: false });
const options = { strategies: ["one"], languageCode: "en-US" };
export const voice = new VoiceChat({ client, microphone, options, onTurn: (turn) => turn.text.trim() });
export const states: VoiceState[] = [voice.state, "listening"];
for await (const piece of microphone.record({ maxSeconds: 5 })) new Uint8Array(piece);
// @ts-expect-error: there is no such platform
await client.signIn("fax", { number: "1" });
// @ts-expect-error: the fields are those of the platform
await client.signIn("device", { number: "1" });
// @ts-expect-error: the language is missing
client.converse({ strategies: ["one"], text: "Hi" });
"""


@pytest.fixture(scope="module")
def project(built: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty project with the packed client."""
    folder = tmp_path_factory.mktemp("project")
    run("npm", "pack", "--ignore-scripts", "--pack-destination", str(folder), cwd=CLIENT)
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    (packed,) = folder.glob("*.tgz")
    run("npm", "install", "--offline", "--no-audit", "--no-fund", str(packed), cwd=folder)
    return folder


def run(*command: str, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, timeout=120, check=False, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_has_what_it_needs_and_nothing_else(project: Path) -> None:
    installed = project / "node_modules/parley-client"
    assert sorted(path.name for path in installed.iterdir()) == ["LICENSE", "README.md", "dist", "package.json"]
    assert "dependencies" not in loads((installed / "package.json").read_bytes())
    assert [path.name for path in (project / "node_modules").iterdir() if path.name[0] != "."] == ["parley-client"]


async def test_the_example_of_the_readme_runs_unchanged(
    project: Path, server: Server, configure: Configure, strategy: Configure
) -> None:
    keys = [{"id": "one", "key": KEY}]
    await configure("auth", "default", {"require_sign": True, "sign_keys": keys})
    await strategy("scripted", "say:I am a scripted model.")
    blocks = re.findall(r"```js\n(.*?)```", (CLIENT / "README.md").read_text(), re.DOTALL)
    (project / "example.js").write_text(blocks[0])
    process = await asyncio.create_subprocess_exec(
        shutil.which("node") or "node",
        "example.js",
        cwd=project,
        env={"URL": server.url, "APP_SIGN_KEY": KEY},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        output, errors = await process.communicate()
    assert re.fullmatch(rb"I am a scripted model\.\nconversation [0-9a-f]{32}\n", output), (output, errors)


def test_its_types_know_platforms_events_and_replies(project: Path) -> None:
    (project / "consumer.ts").write_text(CONSUMER)
    options = {"strict": True, "noEmit": True, "module": "NodeNext", "target": "ES2022", "lib": ["ES2022", "DOM"]}
    config = {
        "compilerOptions": {**options, "types": [], "noUncheckedIndexedAccess": True},
        "files": ["consumer.ts"],
    }
    (project / "tsconfig.json").write_bytes(dumps(config))
    run(str(COMPILER), "--project", "tsconfig.json", cwd=project)
