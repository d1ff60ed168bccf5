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
MPEG_PS = "video/mp2p"
QUICKTIME = "video/quicktime"
MP2 = "audio/x-mp2"
ADIF = "audio/x-adif"
AC3 = "audio/ac3"
EAC3 = "audio/eac3"
DTS = "audio/vnd.dts"
RIFX = "audio/x-rifx"
DSS = "audio/x-dss"
DS2 = "audio/x-ds2"
MUSEPACK_7 = "audio/x-musepack"
MUSEPACK_8 = "audio/x-musepack-sv8"
DSF = "audio/x-dsf"
DFF = "audio/x-dff"
SOX = "audio/x-sox"
NUT = "video/x-nut"
SBC = "audio/x-sbc"
IRCAM = "audio/x-ircam"
SPDIF = "audio/x-iec61937"
APE = "audio/x-ape"
TTA = "audio/x-tta"
AVI = "video/x-msvideo"
FLV = "video/x-flv"
WEBM_PART = "video/x-webm-part"
MP4_PART = "video/x-mp4-part"
SILK = "audio/silk"
PNG = "image/png"
JPEG = "image/jpeg"
GIF = "image/gif"
WEBP = "image/webp"
HEIF = "image/heif"
AVIF = "image/avif"
BMP = "image/bmp"
TIFF = "image/tiff"
PDF = "application/pdf"
MULTIPART = "multipart/form-data"
GZIP = "application/gzip"
HTML = "text/html"
XML = "application/xml"
JSON = "application/json"
TEXT = "text/plain"
DATA_URL = "text/x-data-url"
BASE64 = "text/x-base64"
PROGRAM = "application/x-executable"
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
    MP2: "MP2",
    AC3: "AC-3",
    EAC3: "E-AC-3",
    DTS: "DTS",
    MPEG_PS: "MPEG-PS",
    RIFX: "RIFX",
    APE: "Monkey's Audio",
    TTA: "TTA",
    MUSEPACK_7: "Musepack SV7",
    MUSEPACK_8: "Musepack SV8",
    DSF: "DSF",
    DFF: "DFF",
    DSS: "DSS",
    SOX: "SoX",
    NUT: "NUT",
    SBC: "SBC",
    AVI: "AVI",
    FLV: "FLV",
    IRCAM: "IRCAM",
    SPDIF: "IEC 61937",
    ADIF: "AAC in ADIF",
    DS2: "DS2",
    "audio/x-evrc": "EVRC",
    "audio/x-ilbc": "iLBC",
    "audio/x-realaudio": "RealAudio",
    "audio/midi": "MIDI",
    WEBM_PART: "a part of a WebM file without its beginning",
    MP4_PART: "a part of an MP4 file without its beginning",
    PNG: "a PNG image",
    JPEG: "a JPEG image",
    GIF: "a GIF image",
    WEBP: "a WebP image",
    HEIF: "a HEIF image",
    AVIF: "an AVIF image",
    BMP: "a BMP image",
    TIFF: "a TIFF image",
    PDF: "a PDF document",
    "application/zip": "a ZIP archive",
    GZIP: "a gzip file",
    "application/x-7z-compressed": "a 7z archive",
    "application/vnd.rar": "a RAR archive",
    "application/zstd": "a Zstandard file",
    "application/x-bzip2": "a bzip2 file",
    "application/x-xz": "an xz file",
    "application/x-tar": "a tar archive",
    "application/x-bplist": "a binary property list",
    PROGRAM: "a program",
    "application/vnd.sqlite3": "an SQLite database",
    "application/vnd.apple.mpegurl": "an M3U playlist",
    HTML: "an HTML page",
    XML: "an XML document",
    JSON: "a JSON text",
    MULTIPART: "a multipart form (send only the file)",
    "application/http": "an HTTP response",
    DATA_URL: "a data URL",
    BASE64: "text in base64 (encode audio once)",
    TEXT: "text",
    MISPLACED: "a file behind white space",
}
"""How messages call the types, in the order in which they list them."""

FOREIGN = frozenset(
    mime_type
    for mime_type in NAMES
    if mime_type.partition("/")[0] in {"application", "image", "multipart", "text"} or mime_type == "audio/midi"
)
"""Types that have no recorded sound."""

_HEIF_BRANDS = (
    b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"mif2", b"msf1",
)  # fmt: skip
"""ISO/IEC 23008-12. The brands of MP4 files have recorded sound."""
_FIRST_BOXES = (b"moov", b"wide", b"mdat", b"free", b"skip", b"pnot", b"uuid", b"udta", b"junk")
_PROGRAM_MAGICS = (
    b"\x7fELF",
    b"\xfe\xed\xfa\xce",  # Mach-O of 32 and 64 bits, in both byte orders.
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",  # Mach-O for several processors, and a class of Java.
)
_SEGMENT_BOXES = (b"styp", b"sidx", b"ssix", b"emsg", b"prft", b"moof")
"""With these begin the segments that a stream has after its first one (ISO/IEC 14496-12, 8.16)."""

SIGNATURES: tuple[tuple[str, tuple[tuple[int, bytes], ...]], ...] = (
    (WAV, ((0, b"RIFF"), (8, b"WAVE"))),
    (RF64, ((0, b"RF64"), (8, b"WAVE"))),  # ITU-R BS.2088, which also defines BW64
    (RF64, ((0, b"BW64"), (8, b"WAVE"))),
    (AIFF, ((0, b"FORM"), (8, b"AIFF"))),
    (AIFF, ((0, b"FORM"), (8, b"AIFC"))),
    (QCP, ((0, b"RIFF"), (8, b"QLCM"))),  # RFC 3625
    (RIFX, ((0, b"RIFX"), (8, b"WAVE"))),
    (AVI, ((0, b"RIFF"), (8, b"AVI "))),
    ("audio/midi", ((0, b"RIFF"), (8, b"RMID"))),
    (WEBP, ((0, b"RIFF"), (8, b"WEBP"))),
    (OGG, ((0, b"OggS"),)),
    (FLAC, ((0, b"fLaC"),)),
    *((HEIF, ((4, b"ftyp"), (8, brand))) for brand in _HEIF_BRANDS),
    *((AVIF, ((4, b"ftyp"), (8, brand))) for brand in (b"avif", b"avis")),
    (MP4, ((4, b"ftyp"),)),
    *((QUICKTIME, ((0, b"\0"), (4, box))) for box in _FIRST_BOXES),
    *((MP4_PART, ((0, b"\0"), (4, box))) for box in _SEGMENT_BOXES),
    (WEBM, ((0, b"\x1a\x45\xdf\xa3"),)),
    (WEBM_PART, ((0, b"\x1f\x43\xb6\x75"),)),  # A cluster.
    (WEBM_PART, ((0, b"\x18\x53\x80\x67"),)),  # A segment.
    (MPEG_PS, ((0, b"\0\0\1\xba"),)),  # ISO/IEC 13818-1, 2.5.3.3
    (ADIF, ((0, b"ADIF"),)),
    *((DSS, ((0, magic),)) for magic in (b"\2dss", b"\3dss")),
    *((DS2, ((0, magic),)) for magic in (b"\1ds2", b"\3ds2", b"\7ds2")),
    (MUSEPACK_7, ((0, b"MP+\7"),)),
    (MUSEPACK_7, ((0, b"MP+\x17"),)),
    (MUSEPACK_8, ((0, b"MPCK"),)),
    (DSF, ((0, b"DSD "),)),
    (DFF, ((0, b"FRM8"), (12, b"DSD "))),
    (SOX, ((0, b".SoX"),)),
    (SOX, ((0, b"XoS."),)),
    (NUT, ((0, b"nut/multimedia container\0"),)),
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
    (APE, ((0, b"MAC "),)),
    (TTA, ((0, b"TTA1"),)),
    (TTA, ((0, b"TTA2"),)),
    *((IRCAM, ((0, b"\x64\xa3%c\0" % machine), (9, bytes(3)))) for machine in range(1, 5)),
    *((IRCAM, ((0, b"\0%c\xa3\x64" % machine), (8, bytes(3)))) for machine in range(1, 5)),
    (SPDIF, ((0, b"\x72\xf8\x1f\x4e"),)),  # The sync words of IEC 61937-1, in both byte orders.
    (SPDIF, ((0, b"\xf8\x72\x4e\x1f"),)),
    ("audio/x-realaudio", ((0, b".RMF\0"),)),
    ("audio/x-realaudio", ((0, b".ra\xfd"),)),
    ("audio/midi", ((0, b"MThd\0\0\0\6"),)),
    (FLV, ((0, b"FLV\1"),)),
    (PNG, ((0, b"\x89PNG\r\n\x1a\n"),)),
    (JPEG, ((0, b"\xff\xd8\xff\xe0"), (6, b"JFIF"))),
    (JPEG, ((0, b"\xff\xd8\xff\xe1"), (6, b"Exif"))),
    (GIF, ((0, b"GIF87a"),)),
    (GIF, ((0, b"GIF89a"),)),
    *((BMP, ((0, b"BM"), (6, bytes(4)), (14, b"%c\0\0\0" % size))) for size in (12, 40, 52, 56, 64, 108, 124)),
    *((TIFF, ((0, magic),)) for magic in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),
    (PDF, ((0, b"%PDF-"),)),
    *((GZIP, ((0, b"\x1f\x8b\x08%c" % flags),)) for flags in range(32)),  # RFC 1952, 2.3.1
    ("application/zip", ((0, b"PK\3\4"),)),
    ("application/zip", ((0, b"PK\5\6"),)),  # An empty one.
    ("application/zstd", ((0, b"\x28\xb5\x2f\xfd"),)),  # RFC 8878, 3.1.1
    ("application/x-bzip2", ((0, b"BZh"), (4, b"1AY&SY"))),
    ("application/x-xz", ((0, b"\xfd7zXZ\0"),)),
    ("application/x-tar", ((257, b"ustar"),)),
    ("application/x-bplist", ((0, b"bplist"),)),
    ("application/http", ((0, b"HTTP/1."),)),
    ("application/x-7z-compressed", ((0, b"7z\xbc\xaf\x27\x1c"),)),
    ("application/vnd.rar", ((0, b"Rar!\x1a\7"),)),
    *((PROGRAM, ((0, magic),)) for magic in _PROGRAM_MAGICS),
    ("application/vnd.sqlite3", ((0, b"SQLite format 3\0"),)),
    ("application/vnd.apple.mpegurl", ((0, b"#EXTM3U"),)),
)
"""Each type with what it has at fixed offsets: at least four bytes, because two samples may look like anything."""

JPEG_MAGIC = b"\xff\xd8\xff"
"""Too short to tell an image from PCM by it alone."""
PE_MAGIC = b"MZ"
"""Too short, too: programs for Windows also have a second magic, whose place is in the header."""


def signed_type(head: bytes) -> str | None:
    """Return the type of a file that begins with `head`, by its signature alone."""
    for mime_type, ((first_at, first), *rest) in SIGNATURES:
        if head.startswith(first, first_at) and all(head.startswith(magic, at) for at, magic in rest):
            return mime_type
    return None
