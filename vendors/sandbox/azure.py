"""Azure's speech services under `/azure`: on their paths of a resource's own domain, and on the classic ones."""

from aiohttp import web

from vendors.sandbox.azure_dialect import AZURE
from vendors.sandbox.azure_hearing import hear_file, listen
from vendors.sandbox.azure_speaking import list_voices, speak, talk
from vendors.sandbox.sandbox import Sandbox

_SPOKEN = ("/azure/tts/cognitiveservices", "/azure/cognitiveservices")
_HEARD = "/azure/stt/speech/recognition/{mode:interactive|conversation|dictation}/cognitiveservices/v1"


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    speaking = [
        route
        for base in _SPOKEN
        for route in (
            sandbox.post(f"{base}/v1", AZURE, "tts", speak),
            sandbox.get(f"{base}/websocket/v1", AZURE, "tts", talk),
            sandbox.get(f"{base}/voices/list", AZURE, "voices", list_voices),
        )
    ]
    return [
        *speaking,
        sandbox.post(_HEARD, AZURE, "stt", hear_file),
        sandbox.get(_HEARD, AZURE, "stt", listen),
        sandbox.get("/azure/stt/speech/universal/v2", AZURE, "stt", listen),
    ]
