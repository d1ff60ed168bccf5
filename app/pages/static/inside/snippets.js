// The request of a turn as code: a curl command, and programs with the clients for TypeScript and Python.
//
// Each reads the session from the environment variable SESSION, and audio from the file recording.wav.

const SESSION_HEADER = "x-service-session-token";
const APP_HEADER = "x-service-app-id";
const KEY_HEADER = "idempotency-key"; // With it, the server would return the stream of the original request.
const DEFAULT_APP = "default";
const RECORDING = "recording.wav";

const OPTIONS = {
  strategies: ["strategies", "strategies"],
  language_code: ["languageCode", "language_code"],
  target_language_code: ["targetLanguageCode", "target_language_code"],
  conversation_id: ["conversationId", "conversation_id"],
  voice: ["voice", "voice"],
  stt_prompt: ["sttPrompt", "stt_prompt"],
  params: ["params", "params"],
};

/** Return the request as a curl command. */
export function curlOf({ method, url, headers = {}, parameters, text }) {
  const isDefaultMethod = method === (parameters ? "POST" : "GET");
  const lines = [`curl -N ${isDefaultMethod ? "" : `-X ${method} `}${quoted(new URL(url, location.href).href)}`];
  for (const [name, value] of Object.entries(headers)) {
    if (name.toLowerCase() === KEY_HEADER) continue;
    const secret = name.toLowerCase() === SESSION_HEADER;
    lines.push(`-H ${secret ? `"${name}: $SESSION"` : quoted(`${name}: ${value}`)}`);
  }
  if (!parameters) return lines.join(" \\\n  ");
  const json = JSON.stringify(parameters, null, 2);
  if (text !== null) return [...lines, `--data-binary ${quoted(json + text)}`].join(" \\\n  ");
  const body = `{ printf %s ${quoted(json)}\n  base64 < ${RECORDING}; } |\n  `;
  return body + [...lines, "--data-binary @-"].join(" \\\n  ");
}

/** Return the request as a program for Node, or null if the client has no method for it. */
export function typescriptOf({ url, headers = {}, parameters, text }) {
  if (!parameters) return null;
  const spoken = text === null;
  const rows = [
    ...optionsOf(parameters, 0).map(([name, value]) => `  ${name}: ${JSON.stringify(value)},`),
    spoken ? `  audio: await readFile("${RECORDING}"),` : `  text: ${JSON.stringify(text)},`,
  ];
  return [
    ...(spoken ? ['import { readFile } from "node:fs/promises";'] : []),
    'import { ParleyClient } from "parley-client";',
    "",
    `const url = ${JSON.stringify(originOf(url))};`,
    "const session = {",
    '  uid: "",',
    '  token: process.env.SESSION ?? "",',
    "  bpAuth: null,",
    "};",
    `const client = new ParleyClient(url, ${JSON.stringify(appOf(headers))}, { session });`,
    "const turn = client.converse({",
    ...rows,
    "});",
    "for await (const { name, content } of turn) {",
    '  if (name === "assistant_output_chunk")',
    "    process.stdout.write(content.text);",
    "}",
  ].join("\n");
}

/** Return the request as a Python program, or null if the client has no method for it. */
export function pythonOf({ url, headers = {}, parameters, text }) {
  if (!parameters) return null;
  const spoken = text === null;
  const rows = [
    ...optionsOf(parameters, 1).map(([name, value]) => `            ${name}=${pythonLiteral(value)},`),
    spoken ? `            audio=Path("${RECORDING}").read_bytes(),` : `            text=${pythonLiteral(text)},`,
  ];
  const app = appOf(headers) === DEFAULT_APP ? "" : `, ${pythonLiteral(appOf(headers))}`;
  return [
    "import asyncio",
    "import os",
    ...(spoken ? ["from pathlib import Path"] : []),
    "",
    "from parley_client import ParleyClient, TextChunk",
    "",
    "",
    "async def main() -> None:",
    `    url = ${pythonLiteral(originOf(url))}`,
    '    session = os.environ["SESSION"]',
    `    async with ParleyClient(url${app}, session=session) as client:`,
    "        turn = client.converse(",
    ...rows,
    "        )",
    "        async for event in turn:",
    "            if isinstance(event, TextChunk):",
    '                print(event.text, end="", flush=True)',
    "",
    "",
    "asyncio.run(main())",
  ].join("\n");
}

const optionsOf = (parameters, language) =>
  Object.entries(OPTIONS)
    .filter(([field]) => field in parameters)
    .map(([field, names]) => [names[language], parameters[field]]);

const originOf = (url) => new URL(url, location.href).origin;

function appOf(headers) {
  const found = Object.entries(headers).find(([name]) => name.toLowerCase() === APP_HEADER);
  return found ? found[1] : DEFAULT_APP;
}

/** Return a JSON value as a Python literal. JSON's escapes of a string mean the same there, except for halves of characters. */
function pythonLiteral(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${pythonLiteral(each)}`).join(", ")}}`;
}

/** Return `text` as one word of a shell. */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
