"""Azure's speech services under `/azure`, on the paths of custom domains and on those of regional endpoints."""

from aiohttp import web

from vendors.sandbox.azure.dialect import AZURE
from vendors.sandbox.azure.recognition import recognize_file, recognize_stream
from vendors.sandbox.azure.synthesis import list_voices, synthesize, synthesize_stream
from vendors.sandbox.sandbox import Sandbox

_SYNTHESIS_PATHS = ("/azure/tts/cognitiveservices", "/azure/cognitiveservices")
_RECOGNITION_PATH = "/azure/stt/speech/recognition/{mode:interactive|conversation|dictation}/cognitiveservices/v1"


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    synthesis = [
        route
        for base in _SYNTHESIS_PATHS
        for route in (
            sandbox.post(f"{base}/v1", AZURE, "tts", synthesize),
            sandbox.get(f"{base}/websocket/v1", AZURE, "tts", synthesize_stream),
            sandbox.get(f"{base}/voices/list", AZURE, "voices", list_voices),
        )
    ]
    return [
        *synthesis,
        sandbox.post(_RECOGNITION_PATH, AZURE, "stt", recognize_file),
        sandbox.get(_RECOGNITION_PATH, AZURE, "stt", recognize_stream),
        sandbox.get("/azure/stt/speech/universal/v2", AZURE, "stt", recognize_stream),
    ]
