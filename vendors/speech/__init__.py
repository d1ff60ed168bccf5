"""Speech: recognition, synthesis and pronunciation assessment, in a folder for Azure and a file per other protocol.

Speech is checked before it is sent (`guard.py`). Audio is held back until 300 ms of it, or all of it, has arrived.
Audio that is too slow, silent or empty is a failed attempt like any other, and the timeout for the first output
continues meanwhile. If no other strategy is left, only silence is held back. MP3 is judged by the headers and side
information of its frames, without decoding. A text without letters and digits may be silent.
"""
