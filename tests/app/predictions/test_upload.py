"""Uploads: the type is that of the content, names are ours, and links need no headers."""

import io
import wave

import pytest

from tests.app.callers import ask
from tests.app.predictions.hosts import Studio

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32
MP4 = b"\0\0\0\x18ftypmp42" + b"\0" * 32


def wav() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 2, 16_000, 0, "NONE", ""))
        sound.writeframes(b"\0\0" * 100)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0" + b"\0" * 32, "image/jpeg"),
        (b"RIFF\x20\0\0\0WEBPVP8 ", "image/webp"),
        (b"GIF89a" + b"\0" * 32, "image/gif"),
        (wav(), "audio/wav"),
        (b"ID3\x04\0\0\0\0\0\0", "audio/mpeg"),
        (b"OggS" + b"\0" * 32, "audio/ogg"),
        (MP4, "video/mp4"),
        (b"%PDF-1.7\n", "application/pdf"),
    ],
)
async def test_type_is_that_of_the_content(studio: Studio, content: bytes, content_type: str):
    headers = {"Content-Type": "application/octet-stream"}
    status, answer = await studio.call("PUT", "/bp/ai/upload", data=content, headers=headers)
    assert status == 200, answer
    async with studio.server.http.get(answer["url"]) as response:
        assert (response.status, response.content_type, await response.read()) == (200, content_type, content)
        assert response.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "content",
    [
        *(b"\0\0\0\x18ftyp" + brand + bytes(32) for brand in (b"heic", b"avif", b"qt  ")),
        b"",
        b"<svg onload=alert(1)>",
        b"<html>",
        b"MZ",
        b"PK\3\4",
        b"\x1a\x45\xdf\xa3",
    ],
)
async def test_other_files_are_refused(studio: Studio, content: bytes):
    status, answer = await studio.call("PUT", "/bp/ai/upload", data=content)
    assert (status, answer["error"]["error_type"]) == (400, "invalid_parameter")


async def test_file_over_the_limit_is_refused(studio: Studio):
    largest = PNG + b"\0" * (20 * 1024 * 1024 - len(PNG))
    assert (await studio.call("PUT", "/bp/ai/upload", data=io.BytesIO(largest)))[0] == 200
    status, answer = await studio.call("PUT", "/bp/ai/upload", data=io.BytesIO(largest + b"\0"))
    assert (status, answer["error"]["message"]) == (413, "invalid_parameter: body exceeds 20971520 bytes")


async def test_app_server_uploads_for_a_user(studio: Studio):
    path = f"/bp/server/user/{studio.uid}/ai/upload"
    status, answer = await ask(studio.server, "PUT", path, data=PNG, headers=studio.as_server())
    assert status == 200
    assert f"/uploads/default/{studio.uid}/" in answer["url"]
    path = f"/bp/server/user/{'0' * 32}/ai/upload"
    assert (await ask(studio.server, "PUT", path, data=PNG, headers=studio.as_server()))[0] == 404
