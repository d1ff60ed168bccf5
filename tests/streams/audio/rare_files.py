"""Files of types that FFmpeg reads but does not write, and the parts of files that streams consist of."""

import struct
from array import array

from streams.audio.audio import wav_header
from tests.streams.audio.mp3_files import tone
from tests.streams.audio.phone_files import RATE, phone_file

_DSD = b"\x69" * (4096 * 44)
"""Half a second of silence: as many ones as zeros."""
_DSD_RATE = 2_822_400
ID3 = b"ID3\4\0\0\0\0\0\x3fPRIV" + bytes(59)
"""The tag with which segments of HTTP Live Streaming begin."""


def big_id3(size: int = 4096) -> bytes:
    """Return a tag that is longer than what is needed to recognize a type, as those with a picture are."""
    return b"ID3\4\0\0" + bytes(size >> shift & 0x7F for shift in (21, 14, 7, 0)) + bytes(size)


def rifx() -> bytes:
    """Return WAV whose numbers are big-endian."""
    samples = array("h", tone(seconds=0.5, sample_rate=RATE))
    samples.byteswap()
    data = samples.tobytes()
    head = struct.pack(">4sI8sIHHIIHH", b"RIFX", 36 + len(data), b"WAVEfmt ", 16, 1, 1, RATE, 2 * RATE, 2, 16)
    return head + struct.pack(">4sI", b"data", len(data)) + data


def dsf() -> bytes:
    fmt = struct.pack("<4sQIIIIIIQII", b"fmt ", 52, 1, 0, 1, 1, _DSD_RATE, 1, len(_DSD) * 8, 4096, 0)
    data = struct.pack("<4sQ", b"data", 12 + len(_DSD)) + _DSD
    return struct.pack("<4sQQQ", b"DSD ", 28, 28 + len(fmt) + len(data), 0) + fmt + data


def dff() -> bytes:
    properties = (
        b"SND "
        + _chunk(b"FS  ", struct.pack(">I", _DSD_RATE))
        + _chunk(b"CHNL", struct.pack(">H", 1) + b"SLFT")
        + _chunk(b"CMPR", b"DSD \x0enot compressed\0")
    )
    chunks = b"DSD " + _chunk(b"FVER", b"\1\5\0\0") + _chunk(b"PROP", properties) + _chunk(b"DSD ", _DSD)
    return _chunk(b"FRM8", chunks)


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack(">Q", len(content)) + content


def dts_frames(*, swapped: bool = False) -> bytes:
    """Return frames of 1,024 bytes whose content is arbitrary."""
    content = bytes(at % 251 for at in range(5 * 1015))
    frames = bytearray(
        b"".join(b"\x7f\xfe\x80\1\xfc\x3c\x3f\xf0\0" + content[at : at + 1015] for at in range(0, 5075, 1015))
    )
    if swapped:
        frames[::2], frames[1::2] = frames[1::2], frames[::2]
    return bytes(frames)


def webm_cluster() -> bytes:
    """Return what follows the first piece that a browser's recorder delivers."""
    webm = phone_file("webm")
    return webm[webm.index(b"\x1f\x43\xb6\x75") :]


def mp4_segment(first: bytes = b"") -> bytes:
    """Return a segment without the first one, which describes the codec, behind a box of this name."""
    mp4 = phone_file("fragmented")
    box = struct.pack(">I4s", 40, first) + bytes(32) if first else b""
    return box + mp4[mp4.index(b"moof") - 4 :]


def misplaced_moov(first: bytes) -> bytes:
    """Return an MP4 file that begins with a box of this name instead of the one that states its type."""
    mp4 = phone_file("m4a")
    size = int.from_bytes(mp4[:4])
    return struct.pack(">I4s", size, first) + bytes(size - 8) + mp4[size:]


def multipart(audio: bytes) -> bytes:
    disposition = b'Content-Disposition: form-data; name="audio"; filename="a.wav"'
    return b"--boundary\r\n" + disposition + b"\r\n\r\n" + audio + b"\r\n--boundary--\r\n"


def plain_wav() -> bytes:
    pcm = tone(seconds=0.5, sample_rate=RATE)
    return wav_header(RATE, data_bytes=len(pcm)) + pcm
