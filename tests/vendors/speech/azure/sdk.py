"""Calls of the vendor's own SDK to the sandbox, in a separate process, because the SDK starts threads and blocks.

`python -m tests.vendors.speech.azure.sdk URL TASK` prints what came of it as JSON.
"""

import sys
import threading
from typing import Any

import azure.cognitiveservices.speech as sdk

from streams.wire.codec import dumps
from tests.vendors.speech.azure.inputs import PAUSE, REFERENCE, SAID, TONE
from vendors.sandbox.faults import key_of

LONG_S = 20


def config(url: str, path: str, **key_options: Any) -> sdk.SpeechConfig:
    key = "wrong" if key_options.pop("wrong", False) else key_of(**key_options)
    made = sdk.SpeechConfig(endpoint=url.replace("http", "ws", 1) + path, subscription=key)
    made.speech_recognition_language = "en-US"
    made.speech_synthesis_voice_name = "en-US-JennyNeural"
    made.set_speech_synthesis_output_format(sdk.SpeechSynthesisOutputFormat.Audio24Khz96KBitRateMonoMp3)
    return made


def source(*pieces: bytes) -> sdk.audio.AudioConfig:
    stream = sdk.audio.PushAudioInputStream(sdk.audio.AudioStreamFormat(16_000, 16, 1))
    for piece in pieces:
        stream.write(piece)
    stream.close()
    return sdk.audio.AudioConfig(stream=stream)


def speaking(url: str) -> dict[str, Any]:
    """Two turns on one connection."""
    synthesizer = sdk.SpeechSynthesizer(config(url, "/azure/tts/cognitiveservices/websocket/v1"), audio_config=None)
    ended = threading.Semaphore(0)
    shapes: list[tuple[int, int]] = []
    words: list[str] = []
    synthesizer.viseme_received.connect(
        lambda event: shapes.append((event.audio_offset // 10_000, event.viseme_id))
    )
    synthesizer.synthesis_word_boundary.connect(lambda event: words.append(event.text))
    synthesizer.synthesis_completed.connect(lambda _: ended.release())
    audio = []
    for text in (SAID, "Once more."):
        audio.append(synthesizer.speak_text_async(text).get().audio_data.hex())
        assert ended.acquire(timeout=LONG_S)
    return {"audio": audio, "shapes": shapes, "words": words}


def listening(url: str) -> dict[str, Any]:
    made = config(url, "/azure/stt/speech/universal/v2", text="Good morning.|How are you?")
    recognizer = sdk.SpeechRecognizer(made, source(TONE, PAUSE, TONE))
    ended = threading.Event()
    partial: list[str] = []
    final: list[str] = []
    recognizer.recognizing.connect(lambda event: partial.append(event.result.text))
    recognizer.recognized.connect(lambda event: final.append(event.result.text))
    recognizer.session_stopped.connect(lambda _: ended.set())
    recognizer.start_continuous_recognition()
    assert ended.wait(LONG_S)
    recognizer.stop_continuous_recognition()
    once = sdk.SpeechRecognizer(made, source(TONE, PAUSE, TONE)).recognize_once()
    silence = sdk.SpeechRecognizer(made, source(PAUSE)).recognize_once()
    return {
        "partial": partial,
        "final": [text for text in final if text],
        "once": once.text,
        "silence": str(silence.reason),
    }


def assessing(url: str) -> dict[str, Any]:
    recognizer = sdk.SpeechRecognizer(
        config(url, "/azure/stt/speech/universal/v2", text="good uh morning friend"), source(TONE)
    )
    wanted = sdk.PronunciationAssessmentConfig(
        reference_text=REFERENCE,
        grading_system=sdk.PronunciationAssessmentGradingSystem.HundredMark,
        granularity=sdk.PronunciationAssessmentGranularity.Phoneme,
        enable_miscue=True,
    )
    wanted.enable_prosody_assessment()
    wanted.apply_to(recognizer)
    graded = sdk.PronunciationAssessmentResult(recognizer.recognize_once())
    return {
        "words": [(word.word, word.error_type) for word in graded.words],
        "phonemes": [phoneme.phoneme for phoneme in graded.words[0].phonemes],
        "scores": {
            "AccuracyScore": graded.accuracy_score,
            "FluencyScore": graded.fluency_score,
            "CompletenessScore": graded.completeness_score,
            "ProsodyScore": graded.prosody_score,
            "PronScore": graded.pronunciation_score,
        },
    }


def failing(url: str) -> dict[str, Any]:
    path = "/azure/stt/speech/universal/v2"

    def reported(made: sdk.SpeechConfig) -> str:
        return str(sdk.SpeechRecognizer(made, source(TONE)).recognize_once().cancellation_details.error_details)

    return {
        "wrong key": reported(config(url, path, wrong=True)),
        "error": reported(config(url, path, fault="error_inside_200", position="before")),
        "unknown voice": unknown_voice(url),
    }


def unknown_voice(url: str) -> str:
    """Ask for a voice that does not exist, and return the error.

    On a slow connection the SDK sometimes waits for 40 s, and then leaves out its first message. It is asked again.
    """
    french = config(url, "/azure/tts/cognitiveservices/websocket/v1")
    french.speech_synthesis_voice_name = "fr-FR-NobodyNeural"
    for _ in range(3):
        refused = sdk.SpeechSynthesizer(french, audio_config=None).speak_text_async(SAID).get()
        error = str(refused.cancellation_details.error_details)
        if "speech.config" not in error:
            break
    return error


TASKS = {"speaking": speaking, "listening": listening, "assessing": assessing, "failing": failing}

if __name__ == "__main__":
    print(dumps(TASKS[sys.argv[2]](sys.argv[1])).decode())  # noqa: T201 - the answer
