"""The vendor's own SDK and our clients exchange the same content with the sandbox."""

import asyncio
import sys
from importlib.util import find_spec
from typing import Any

import pytest

from streams.wire.codec import loads
from tests.vendors.speech.azure.clients import (
    assess,
    audio_of,
    sandbox_assessor,
    sandbox_recognizer,
    sandbox_voice,
    shapes_of,
    synthesize,
    transcribe,
    words,
)
from tests.vendors.speech.azure.inputs import PAUSE, REFERENCE, SAID, TONE
from tests.vendors.speech.azure.service import buffered
from vendors.http.transport import VendorHttp
from vendors.protocols import AssessmentRequest
from vendors.sandbox.server import Running

pytestmark = pytest.mark.skipif(find_spec("azure") is None, reason="the vendor's SDK is not installed")


async def result_of(sandbox: Running, task: str) -> dict[str, Any]:
    """Return the result of a task of `sdk`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.vendors.speech.azure.sdk", sandbox.url, task, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(150):
            reported, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0
    return loads(reported)


async def test_sdk_gets_the_same_audio_and_shapes(http: VendorHttp, sandbox: Running):
    reported = await result_of(sandbox, "speaking")

    client = sandbox_voice(http, sandbox, spec={"need_viseme": True})
    items = await synthesize(client, SAID)
    once_more = await synthesize(client, "Once more.")
    assert reported["audio"] == [audio_of(items).hex(), audio_of(once_more).hex()]
    shapes = [(shape.offset_ms, shape.viseme_id) for shape in shapes_of([*items, *once_more])]
    assert [tuple(shape) for shape in reported["shapes"]] == shapes
    assert reported["words"] == ["Good", "morning,", "how", "are", "you?", "Once", "more."]


async def test_sdk_recognizes_the_same_text(http: VendorHttp, sandbox: Running):
    reported = await result_of(sandbox, "listening")

    client = sandbox_recognizer(http, sandbox, text="Good morning.|How are you?")
    transcripts = await transcribe(client, buffered(TONE, PAUSE, TONE))
    assert " ".join(reported["final"]) == transcripts[-1].text == reported["once"]
    assert reported["final"] == ["Good morning.", "How are you?"]
    assert set(reported["partial"]) == {"good", "how"}
    assert reported["silence"] == "ResultReason.NoMatch"


async def test_sdk_gets_the_same_grades(http: VendorHttp, sandbox: Running):
    reported = await result_of(sandbox, "assessing")

    client = sandbox_assessor(http, sandbox, text="good uh morning friend")
    request = AssessmentRequest(REFERENCE, enable_miscue=True, enable_prosody_assessment=True)
    result = await assess(client, buffered(TONE), request)
    assert [tuple(word) for word in reported["words"]] == words(result)
    assert reported["phonemes"] == list("good")
    ours = result.raw["NBest"][0]["PronunciationAssessment"]
    # The vendor marks miscues itself in a single phrase. Our client marks them in every mode, by the same rules.
    assert {name: reported["scores"][name] for name in ours} == pytest.approx(ours, abs=0.1)


async def test_sdk_understands_faults(sandbox: Running):
    reported = await result_of(sandbox, "failing")

    assert "Authentication error (401)" in reported["wrong key"]
    assert reported["error"]
    assert "1007" in reported["unknown voice"]
    assert "Unsupported voice fr-FR-NobodyNeural" in reported["unknown voice"]
