"""Vendor accounts and strategies that use the sandbox."""

from storage.operators.audit import COMMAND
from tests.running.servers import Server
from vendors.sandbox.server import Running

ROOTS = {
    "vendor_b_llm": "/openai/v1",
    "vendor_b_audio": "/openai/v1",
    "anthropic": "/anthropic",
    "gemini": "/gemini/v1beta",
    "vendor_a_audio": "/azure",
    "vendor_c": "/elevenlabs",
    "vendor_d_audio": "/google",
}


MODELS = {"vendor_b_llm": "gpt-4o-mini", "anthropic": "claude-3-5-haiku-latest", "gemini": "gemini-2.5-flash"}


VOICES = {
    "vendor_b_audio": {"model": "gpt-4o-mini-tts", "voice": "alloy"},
    "vendor_a_audio": {"voice": "en-US-JennyNeural"},
    "vendor_c": {"model": "eleven_flash_v2_5", "voice": "21m00Tcm4TlvDq8ikWAM"},
    "vendor_d_audio": {"voice": "en-US-Neural2-C"},
}


async def account(server: Server, sandbox: Running, name: str, platform: str, key: str = "sandbox") -> None:
    value = {"platform": platform, "base_url": sandbox.url + ROOTS[platform], "api_key": key}
    await server.services.configs.put("default", "vendor_accounts", name, value, author="test", origin=COMMAND)


async def chat(server: Server, sandbox: Running, name: str, platform: str, key: str = "sandbox", **fields) -> None:
    await account(server, sandbox, name, platform, key)
    value = {"chat": {"account": name, "model": MODELS[platform]}, **fields}
    await server.services.configs.put("default", "conversation", name, value, author="test", origin=COMMAND)
