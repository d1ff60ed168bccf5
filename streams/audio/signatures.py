"""The types of files that are sent as audio, by mistake or on purpose: their names and first bytes."""

WAV = "audio/wav"
OGG = "audio/ogg"
FLAC = "audio/flac"
MP4 = "audio/mp4"
WEBM = "audio/webm"
MP3 = "audio/mpeg"
AMR = "audio/amr"
AMR_WB = "audio/amr-wb"
AMR_MC = "audio/x-amr-mc"
AAC = "audio/aac"
LATM = "audio/mp4a-latm"
CAF = "audio/x-caf"
AIFF = "audio/aiff"
RF64 = "audio/x-rf64"
WMA = "audio/x-ms-wma"
AU = "audio/basic"
W64 = "audio/x-w64"
VOC = "audio/x-voc"
WAVPACK = "audio/x-wavpack"
QCP = "audio/qcelp"
MPEG_TS = "video/mp2t"
QUICKTIME = "video/quicktime"
SILK = "audio/silk"
PNG = "image/png"
JPEG = "image/jpeg"
GIF = "image/gif"
WEBP = "image/webp"
PDF = "application/pdf"
GZIP = "application/gzip"
HTML = "text/html"
XML = "application/xml"
JSON = "application/json"
TEXT = "text/plain"
DATA_URL = "text/x-data-url"
BASE64 = "text/x-base64"
MISPLACED = "application/x-misplaced"

NAMES = {
    "audio/pcm": "PCM",
    WAV: "WAV",
    OGG: "Ogg",
    FLAC: "FLAC",
    MP3: "MP3",
    MP4: "MP4",
    WEBM: "WebM",
    AMR: "AMR",
    AMR_WB: "AMR-WB",
    AAC: "AAC",
    CAF: "CAF",
    AIFF: "AIFF",
    RF64: "RF64",
    WMA: "WMA",
    AU: "AU",
    W64: "W64",
    VOC: "VOC",
    WAVPACK: "WavPack",
    LATM: "LATM",
    QCP: "QCP",
    MPEG_TS: "MPEG-TS",
    QUICKTIME: "QuickTime",
    AMR_MC: "AMR of several channels",
    SILK: "SILK",
    "audio/x-evrc": "EVRC",
    "audio/x-ilbc": "iLBC",
    "audio/x-ape": "Monkey's Audio",
    "audio/x-tta": "TTA",
    "audio/x-realaudio": "RealAudio",
    "audio/midi": "MIDI",
    "video/x-msvideo": "AVI",
    "video/x-flv": "FLV",
    PNG: "a PNG image",
    JPEG: "a JPEG image",
    GIF: "a GIF image",
    WEBP: "a WebP image",
    PDF: "a PDF document",
    "application/zip": "a ZIP archive",
    GZIP: "a gzip file",
    "application/x-7z-compressed": "a 7z archive",
    "application/vnd.rar": "a RAR archive",
    "application/vnd.apple.mpegurl": "an M3U playlist",
    HTML: "an HTML page",
    XML: "an XML document",
    JSON: "a JSON text",
    DATA_URL: "a data URL",
    BASE64: "text in base64 (encode audio once)",
    TEXT: "text",
    MISPLACED: "a file behind white space",
}
"""How messages call the types, in the order in which they list them."""

FOREIGN = frozenset(
    mime_type
    for mime_type in NAMES
    if mime_type.partition("/")[0] in {"application", "image", "text"} or mime_type == "audio/midi"
)
"""Types that have no recorded sound."""

SIGNATURES: tuple[tuple[str, tuple[tuple[int, bytes], ...]], ...] = (
    (WAV, ((0, b"RIFF"), (8, b"WAVE"))),
    (RF64, ((0, b"RF64"), (8, b"WAVE"))),  # ITU-R BS.2088, which also defines BW64
    (RF64, ((0, b"BW64"), (8, b"WAVE"))),
    (AIFF, ((0, b"FORM"), (8, b"AIFF"))),
    (AIFF, ((0, b"FORM"), (8, b"AIFC"))),
    (QCP, ((0, b"RIFF"), (8, b"QLCM"))),  # RFC 3625
    ("video/x-msvideo", ((0, b"RIFF"), (8, b"AVI "))),
    ("audio/midi", ((0, b"RIFF"), (8, b"RMID"))),
    (WEBP, ((0, b"RIFF"), (8, b"WEBP"))),
    (OGG, ((0, b"OggS"),)),
    (FLAC, ((0, b"fLaC"),)),
    (MP4, ((4, b"ftyp"),)),
    *((QUICKTIME, ((0, b"\0"), (4, box))) for box in (b"moov", b"wide", b"mdat", b"free", b"skip", b"pnot")),
    (WEBM, ((0, b"\x1a\x45\xdf\xa3"),)),
    (AMR_MC, ((0, b"#!AMR_MC"),)),  # RFC 4867, 5.2
    (AMR_MC, ((0, b"#!AMR-WB_MC"),)),
    (AMR_WB, ((0, b"#!AMR-WB"),)),  # RFC 4867, 5.1
    (AMR, ((0, b"#!AMR"),)),
    ("audio/x-evrc", ((0, b"#!EVRC"),)),
    ("audio/x-ilbc", ((0, b"#!iLBC"),)),
    (CAF, ((0, b"caff\0\1\0\0"),)),
    (SILK, ((0, b"#!SILK_V3"),)),
    (SILK, ((0, b"\2#!SILK_V3"),)),  # Written by messengers.
    (WMA, ((0, bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")),)),  # The GUID of ASF's header.
    (W64, ((0, bytes.fromhex("726966662e91cf11a5d628db04c10000")),)),  # The GUID of RIFF in Sony Wave64.
    (AU, ((0, b".snd"),)),
    (VOC, ((0, b"Creative Voice File\x1a"),)),
    (WAVPACK, ((0, b"wvpk"),)),
    ("audio/x-ape", ((0, b"MAC "),)),
    ("audio/x-tta", ((0, b"TTA1"),)),
    ("audio/x-realaudio", ((0, b".RMF\0"),)),
    ("audio/x-realaudio", ((0, b".ra\xfd"),)),
    ("audio/midi", ((0, b"MThd\0\0\0\6"),)),
    ("video/x-flv", ((0, b"FLV\1"),)),
    (PNG, ((0, b"\x89PNG\r\n\x1a\n"),)),
    (JPEG, ((0, b"\xff\xd8\xff\xe0"), (6, b"JFIF"))),
    (JPEG, ((0, b"\xff\xd8\xff\xe1"), (6, b"Exif"))),
    (GIF, ((0, b"GIF87a"),)),
    (GIF, ((0, b"GIF89a"),)),
    (PDF, ((0, b"%PDF-"),)),
    (GZIP, ((0, b"\x1f\x8b\x08\0"),)),
    (GZIP, ((0, b"\x1f\x8b\x08\x08"),)),  # With the name of the file.
    ("application/zip", ((0, b"PK\3\4"),)),
    ("application/x-7z-compressed", ((0, b"7z\xbc\xaf\x27\x1c"),)),
    ("application/vnd.rar", ((0, b"Rar!\x1a\7"),)),
    ("application/vnd.apple.mpegurl", ((0, b"#EXTM3U"),)),
)
"""Each type with what it has at fixed offsets: at least four bytes, because two samples may look like anything."""

JPEG_MAGIC = b"\xff\xd8\xff"
"""Too short to tell an image from PCM by it alone."""


def signed_type(head: bytes) -> str | None:
    """Return the type of a file that begins with `head`, by its signature alone."""
    for mime_type, parts in SIGNATURES:
        if all(head.startswith(magic, at) for at, magic in parts):
            return mime_type
    return None
