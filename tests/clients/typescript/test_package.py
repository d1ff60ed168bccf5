"""The packed TypeScript client in an empty project: the example of its README, and its types."""

import asyncio
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from streams.wire.codec import dumps, loads
from tests.clients.packages import TYPESCRIPT, pack_typescript
from tests.clients.typescript.conftest import Configure
from tests.running.servers import Server

KEY = "k-apps-" + "k" * 32
COMPILER = TYPESCRIPT / "node_modules/.bin/tsc"
CONSUMER = """
import { ParleyClient, type ParleyError } from "parley-client";
import { Microphone, MicrophoneFault, VoiceChat, type VoiceState } from "parley-client/audio";
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
const onError = (error: Error) => (error instanceof MicrophoneFault ? error.kind : error.message);
export const voice = new VoiceChat({ client, microphone, options, onTurn: (turn) => turn.text.trim(), onError });
export const states: VoiceState[] = [voice.state, "listening"];
for await (const piece of microphone.record({ maxSeconds: 5 })) new Uint8Array(piece);
// @ts-expect-error: there is no such platform
await client.signIn("fax", { number: "1" });
// @ts-expect-error: the fields are those of the platform
await client.signIn("device", { number: "1" });
// @ts-expect-error: the language is missing
client.converse({ strategies: ["one"], text: "Hi" });
"""

WITHOUT_WEB = """
import { ParleyClient, ParleyError } from "parley-client";
import { ServerClient, verifyWebhook } from "parley-client/server";

const client = new ParleyClient("http://127.0.0.1:8080");
for await (const event of client.converse({ strategies: ["one"], text: "Hi", languageCode: "en-US" })) {
  if (event.name === "end") event.content.digest.chars.toFixed();
}
export const failed = (error: unknown): boolean => error instanceof ParleyError && error.retryable;
const server = new ServerClient("http://127.0.0.1:8080", "default", { kid: "a", alg: "HS256", key: "s" });
await server.user("0190a").assets();
verifyWebhook({ "webhook-id": "1" }, new Uint8Array(), "whsec_AAAA");
"""
"""A project without the types of the web's standards."""
FETCHES = """
import { ParleyClient } from "parley-client";

interface Strict {
  method?: string;
  headers?: HeadersInit;
  body?: BodyInit;
  signal?: AbortSignal;
}
interface Loose {
  method?: string | undefined;
  headers?: [string, string][] | Record<string, string> | undefined;
  body?: ReadableStream | ArrayBuffer | Uint8Array | string | null | undefined;
  signal?: AbortSignal | null | undefined;
  redirect?: "follow" | "error" | "manual" | undefined;
  duplex?: "half" | undefined;
}
interface Complete {
  readonly ok: boolean;
  readonly status: number;
  readonly headers: Headers;
  text(): Promise<string>;
  arrayBuffer(): Promise<ArrayBuffer>;
}
declare function strict(url: string, options?: Strict): Promise<Response>;
declare function loose(input: string | URL | Request, options?: Loose): Promise<Response>;
declare function complete(input: string, options?: RequestInit): Promise<Complete>;
export const clients = [fetch, globalThis.fetch, strict, loose, complete].map(
  (fetch) => new ParleyClient("http://127.0.0.1:8080", "default", { fetch }),
);
new ParleyClient("http://127.0.0.1:8080", "default", {
  fetch: (url, options) => fetch(url, { ...options, keepalive: true }),
});
"""
"""`fetch` as browsers declare it, and as other libraries do: some allow no null, and some have no streams."""
UNDEFINED = """
import type * as parley from "parley-client";
import type * as backend from "parley-client/server";

/** The same, and undefined for each field that may be absent. */
type Given<T> = { [Name in keyof T]: {} extends Pick<T, Name> ? T[Name] | undefined : T[Name] };
type Refused<T> = Given<T> extends T ? never : T;
type Last<All extends unknown[]> = Required<All> extends [...unknown[], infer One] ? One : never;
type Plain = string | number | Uint8Array | readonly unknown[];
type OptionsOf<Area> = {
  [Name in keyof Area]: Area[Name] extends (...given: infer All) => unknown
    ? Refused<Exclude<Last<All>, Plain>>
    : never;
}[keyof Area];

type Client = parley.ParleyClient;
type Areas = "account" | "cards" | "images" | "leaderboards" | "mail" | "predictions" | "sharing" | "wallet";
type Options =
  | Refused<parley.ClientOptions> | Refused<parley.ConverseOptions> | Refused<parley.SpeakOptions>
  | Refused<parley.AssessOptions> | Refused<parley.HistoryOptions> | Refused<parley.ReadOptions>
  | Refused<parley.BackoffOptions> | Refused<parley.SignOptions> | Refused<parley.DeviceFields>
  | Refused<parley.TurnDetection> | Refused<parley.PlatformParams> | Refused<parley.SignInInfo<"search_vendor_id">>
  | Refused<backend.ServerOptions> | Refused<backend.TokenOptions> | Refused<backend.PaymentIntentOptions>
  | Refused<backend.WithdrawOptions>
  | OptionsOf<Client> | { [Area in Areas]: OptionsOf<Client[Area]> }[Areas] | OptionsOf<backend.ServerUser>
  | OptionsOf<parley.Turn>;
type IsNever<T> = [T] extends [never] ? true : T;
export const allowed: IsNever<Options> = true;
export const checked: IsNever<Refused<{ signKey?: string }>> = { signKey: "" };
"""
"""Whether all options may be undefined. `checked` shows that this finds one that may not."""


@pytest.fixture(scope="module")
def project(built: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty project with the packed client."""
    folder = tmp_path_factory.mktemp("project")
    packed = pack_typescript(folder)
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
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
    assert not [path for path in installed.rglob("*") if path.name[0] == "."]
    assert "](../" not in (installed / "README.md").read_text()


async def test_the_example_of_the_readme_runs_unchanged(
    project: Path, server: Server, configure: Configure, strategy: Configure
) -> None:
    keys = [{"id": "one", "key": KEY}]
    await configure("auth", "default", {"require_sign": True, "sign_keys": keys})
    await strategy("scripted", "say:I am a scripted model.")
    blocks = re.findall(r"```js\n(.*?)```", (TYPESCRIPT / "README.md").read_text(), re.DOTALL)
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
    compile_in(project, CONSUMER, noUncheckedIndexedAccess=True)


def test_its_types_need_no_library_of_the_web(project: Path) -> None:
    compile_in(project, WITHOUT_WEB, lib=["ES2022"])


def test_it_takes_the_fetch_of_other_libraries(project: Path) -> None:
    compile_in(project, FETCHES)
    compile_in(project, FETCHES, exactOptionalPropertyTypes=True)


def test_its_options_may_be_undefined(project: Path) -> None:
    compile_in(project, UNDEFINED, exactOptionalPropertyTypes=True)


def compile_in(project: Path, source: str, **options: object) -> None:
    """Compile a program that uses the package, and the types of the package as well."""
    (project / "consumer.ts").write_text(source)
    options = {"lib": ["ES2022", "DOM"], "module": "NodeNext", "target": "ES2022", "types": [], **options}
    config = {"compilerOptions": {"strict": True, "noEmit": True, "skipLibCheck": False, **options}}
    (project / "tsconfig.json").write_bytes(dumps({**config, "files": ["consumer.ts"]}))
    run(str(COMPILER), "--project", "tsconfig.json", cwd=project)
