"""Language tags of clients (BCP 47), and their lookup among the languages that a config or a vendor offers.

Phones, browsers and vendors name one language in many ways: `zh-TW` is `zh-Hant-TW` and `cmn-Hant-TW`, `he-IL` is
`iw-IL`. All tags are compared in one form, and `Languages.find` returns the most specific offer, like the lookup of
RFC 4647, section 3.4. What it needs of the IANA registry and of CLDR is in the tables below.

The library langcodes knows all of both. But it keeps every tag that a client invents in memory, without a bound,
and its nearest match crosses languages: a vendor without Welsh would transcribe it as English.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, NamedTuple

from pydantic import AfterValidator

from streams.regions import ALPHA_2

MAX_CHARACTERS = 100
"""The maximal length of a tag in a request. RFC 5646, section 4.4.1, allows any limit of at least 35."""

_WELL_FORMED = re.compile(
    r"(?P<language>[a-z]{2,3})(?:-(?P<extended>[a-z]{3})(?:-[a-z]{3}){0,2})?"
    r"(?:-(?P<script>[a-z]{4}))?(?:-(?P<region>[a-z]{2,3}|[0-9]{3}))?"
    r"(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*"
    r"(?:-[a-wyz0-9](?:-[a-z0-9]{2,8})+)*(?:-x(?:-[a-z0-9]{1,8})+)?"
)
"""RFC 5646, section 2.1, and regions of three letters. No language has a code of more than three letters."""
_PRIVATE = re.compile(r"x(?:-[a-z0-9]{1,8})+")
_ICU_KEYWORDS = re.compile(r"@[a-z0-9=;_-]*$")
"""As in `en_US@calendar=gregorian`, which is `Locale.identifier` of iOS."""
_JAVA = re.compile(
    r"(?P<language>[a-z]{2,3})-(?P<region>[a-z]{2}|[0-9]{3})?-(?:[a-z0-9-]+-)?#(?P<script>[a-z]{4}(?=-|$))?-?"
    r"(?P<extensions>.*)"
)
"""As in `zh_TW_#Hant` and `th_TH_TH_#u-nu-thai`, which are `Locale.toString()` of Android. Variants are dropped."""

_REGISTERED = {
    "art-lojban": "jbo", "en-gb-oed": "en-gb", "i-ami": "ami", "i-bnn": "bnn", "i-default": "und",
    "i-enochian": "und", "i-hak": "hak", "i-klingon": "tlh", "i-lux": "lb", "i-mingo": "see", "i-navajo": "nv",
    "i-pwn": "pwn", "i-tao": "tao", "i-tay": "tay", "i-tsu": "tsu", "no-bok": "no", "no-nyn": "nn",
    "sgn-be-fr": "sfb", "sgn-be-nl": "vgt", "sgn-ch-de": "sgg", "zh-hakka": "hak", "zh-min-nan": "nan",
    "zh-xiang": "hsn",
    # Of Windows and of Java, before there were tags for them.
    "zh-chs": "zh-hans", "zh-cht": "zh-hant", "ja-jp-jp": "ja-jp", "no-no-ny": "nn-no", "th-th-th": "th-th",
}  # fmt: skip
"""Whole tags with their replacements, mostly of the IANA registry."""
_EXTENDED = frozenset({"ar", "kok", "lv", "ms", "sgn", "sw", "uz", "zh"})
"""The languages with registered extended subtags, such as `zh-yue`."""
_REPLACED = (
    # IANA and CLDR: deprecated codes, and codes of the spoken language that another one includes.
    "he=iw id=in yi=ji jv=jw ro=mo,mol sr-Latn=sh,hbs zh=cmn no=nb,nob ar=arb fa=pes sw=swh ms=zsm fil=tl,tgl "
    "lv=lvs et=ekk "
    # ISO 639-2: codes of three letters for languages that have one of two.
    "af=afr am=amh ar=ara as=asm az=aze be=bel bg=bul bn=ben bs=bos ca=cat cs=ces,cze cy=cym,wel da=dan "
    "de=deu,ger el=ell,gre en=eng es=spa et=est eu=eus,baq fa=fas,per fi=fin fr=fra,fre ga=gle gl=glg gu=guj "
    "ha=hau he=heb hi=hin hr=hrv hu=hun hy=hye,arm id=ind is=isl,ice it=ita ja=jpn jv=jav ka=kat,geo kk=kaz "
    "km=khm kn=kan ko=kor lb=ltz lo=lao lt=lit lv=lav mi=mri,mao mk=mkd,mac ml=mal mn=mon mr=mar ms=msa,may "
    "mt=mlt my=mya,bur ne=nep nl=nld,dut nn=nno no=nor or=ori,ory pa=pan pl=pol ps=pus pt=por ro=ron,rum ru=rus "
    "si=sin sk=slk,slo sl=slv so=som sq=sqi,alb sr=srp su=sun sv=swe sw=swa ta=tam te=tel th=tha tr=tur uk=ukr "
    "ur=urd uz=uzb vi=vie yo=yor zh=zho,chi zu=zul"
)
"""`code=old,old`: the code of a language, and those that it replaces."""
_LANGUAGES = {
    old: new
    for pair in _REPLACED.split()
    for new, _, replaced in [pair.partition("=")]
    for old in replaced.split(",")
}
_REGIONS = {"UK": "GB", "BU": "MM", "DD": "DE", "FX": "FR", "TP": "TL", "YD": "YE", "ZR": "CD"}
_NO_LANGUAGE = frozenset({"und", "mul", "mis", "zxx"})
"""Undetermined, several, uncoded, and no language."""
_LANGUAGES_OF_SCRIPTS = {
    "Latn": "af az bs ca ceb cs cy da de en es et eu fi fil fr ga gl ha haw hr ht hu id is it jv lb ln lt lv mg mi "
    "ms mt nl nn no ny oc pl pt ro rw sk sl sn so sq ss st su sv sw tk tn tr ts uz ve vi xh yo zu",
    "Arab": "ar ckb fa ks ps sd ug ur",
    "Cyrl": "ba be bg kk ky mk mn ru sr tg tt uk",
    "Deva": "hi mr ne sa",
    "Beng": "as bn mni",
    "Hebr": "he yi",
    "Hans": "wuu zh",
    "Hant": "yue",
    "Armn": "hy", "Cans": "iu", "Ethi": "am", "Geor": "ka", "Grek": "el", "Gujr": "gu", "Guru": "pa", "Jpan": "ja",
    "Khmr": "km", "Knda": "kn", "Kore": "ko", "Laoo": "lo", "Mlym": "ml", "Mymr": "my", "Olck": "sat", "Orya": "or",
    "Sinh": "si", "Taml": "ta", "Telu": "te", "Thai": "th", "Tibt": "bo",
}  # fmt: skip
"""The usual script of each language (CLDR, likely subtags). Any script is accepted for other languages."""
_SCRIPTS = {language: script for script, of in _LANGUAGES_OF_SCRIPTS.items() for language in of.split()}
_SCRIPTS_OF_REGIONS = {
    **{("zh", region): "Hant" for region in ("TW", "HK", "MO")},
    ("yue", "CN"): "Hans",
    **{(language, "CN"): "Arab" for language in ("kk", "ky")},
    ("mn", "CN"): "Mong",
    ("pa", "PK"): "Arab",
    ("uz", "AF"): "Arab",
    ("az", "IR"): "Arab",
    ("az", "RU"): "Cyrl",
    ("sd", "IN"): "Deva",
    **{("sr", region): "Latn" for region in ("ME", "RO", "TR")},
}
_ALSO_READ = {("sr", "Latn"): "Cyrl"}
"""CLDR's language matching: readers of the first script also read the other one."""
_AMBIGUOUS = frozenset({("zh", "mnp"), ("ms", "pse")})
"""Extended subtags that are also codes of regions: Northern Min, and Central Malay."""

_LATIN_AMERICA = "AR BO BR BZ CL CO CR CU DO EC GT HN MX NI PA PE PR PY SV US UY VE"
_CONTAINED = {("es", "419"): _LATIN_AMERICA}
_SIMILAR = {
    (
        "en",
        "GB",
    ): "001 150 AU BW CY FJ GH GI HK IE IL IN JM KE LR LS MT MU MW MY NA NG NZ PG PK RW SC SG SL SZ TT TZ "
    "UG VU ZA ZM ZW",
    ("es", "MX"): f"{_LATIN_AMERICA} 419",
    ("es", "US"): f"{_LATIN_AMERICA} 419",
    ("pt", "PT"): "AO CH CV FR GQ GW LU MO MZ ST TL",
    ("zh", "HK"): "MO",
}
"""The regions for which the language of another region stands in, if a vendor does not offer theirs (CLDR)."""
_ANY = "*"


class LanguageTag(NamedTuple):
    """The parts of a tag that matter for speech, in canonical form. `language` is empty if the tag names none."""

    language: str
    script: str = ""
    region: str = ""

    def __str__(self) -> str:
        return "-".join(filter(None, self))


@lru_cache(1024)
def parse_tag(code: str) -> LanguageTag:
    """Parse a tag with hyphens or underscores, in upper or lower case. Raises `ValueError` if it is malformed."""
    text = code.lower().replace("_", "-")
    if "@" in text:
        text = _ICU_KEYWORDS.sub("", text)
    if "#" in text:
        text = _without_java(text)
    text = _REGISTERED.get(text, text)
    match = _WELL_FORMED.fullmatch(text) if code.isascii() else None
    if match is None:
        if code.isascii() and _PRIVATE.fullmatch(text):
            return LanguageTag("")
        raise ValueError("must be a language code such as en-US")
    language, extended, script, region = match.group("language", "extended", "script", "region")
    if extended in ALPHA_2 and (language, extended) not in _AMBIGUOUS:
        region = region or ALPHA_2[extended]
    elif extended and language in _EXTENDED:
        language = extended
    language, _, own_script = _LANGUAGES.get(language, language).partition("-")
    if language in _NO_LANGUAGE:
        return LanguageTag("")
    if region and len(region) > 2 and region.isalpha():
        region = ALPHA_2.get(region)
        if region is None:
            raise ValueError("must be a language code such as en-US")
    region = (region or "").upper()
    return LanguageTag(language, (script or own_script).title(), _REGIONS.get(region, region))


def _without_java(text: str) -> str:
    match = _JAVA.fullmatch(text)
    return "-".join(filter(None, match.group("language", "script", "region", "extensions"))) if match else text


def well_formed(code: str) -> str:
    """Validate a language tag in a request."""
    parse_tag(code)
    return code


LanguageCode = Annotated[str, AfterValidator(well_formed)]
"""A well-formed language tag in a request."""


def language_of(code: str) -> str:
    """Return the language without script and region, or an empty string if `code` names none or is malformed."""
    try:
        return parse_tag(code).language
    except ValueError:
        return ""


class Languages:
    """The languages on a list, for lookups by tag.

    `listed` are tags with the codes that `find` returns for them. If a tag of a language has none of its own, and
    `nearest` is set, it gets that of a similar region, or else the first code of the language. Otherwise a tag only
    gets a code that includes it: `en-GB` gets `en`, but not `en-US`. A tag without a region gets any in both cases.

    A tag never gets a code of another script: `pa-Arab-PK` gets `pa`, but neither `pa-Guru-IN` nor `pa-IN`, whose
    texts its readers cannot read.
    """

    def __init__(self, listed: Mapping[str, str], *, nearest: bool) -> None:
        self.codes = frozenset(listed.values())
        self._found: dict[LanguageTag, _Offer] = {}
        entries = [(_with_script(parse_tag(tag)), code) for tag, code in listed.items()]
        offers = [(tag, _Offer(code, tag.script)) for tag, code in entries]
        for tag, offer in offers:
            self._found.setdefault(tag, offer)
        for tag, offer in offers:
            self._add_wider(tag, offer)
            if nearest:
                self._add_nearest(tag, offer)

    @classmethod
    def of_vendor(cls, codes: str) -> "Languages":
        """Read a vendor's codes, the default of each language first. `tag=code` adds a tag to a code."""
        listed: dict[str, str] = {}
        for entry in codes.split():
            tag, _, code = entry.partition("=")
            listed[tag] = code or tag
        return cls(listed, nearest=True)

    def find(self, code: str) -> str | None:
        """Return the most specific code for a tag. Raises `ValueError` if it is malformed."""
        tag = parse_tag(code)
        language, _, region = tag
        script = tag.script or _script(language, region)
        keys = [(script, region), (script, ""), ("", region), ("", "")]
        if not region:
            keys += [(script, _ANY)] if tag.script else [(script, _ANY), ("", _ANY)]
        found = (self._found.get(LanguageTag(language, *key)) for key in keys)
        readable = {"", script, _ALSO_READ.get((language, script))} if script else None
        fitting = (offer.code for offer in found if offer and (readable is None or offer.script in readable))
        return next(fitting, None)

    def _add_wider(self, tag: LanguageTag, offer: "_Offer") -> None:
        for region in _CONTAINED.get((tag.language, tag.region), "").split():
            self._found.setdefault(tag._replace(region=region), offer)
        self._found.setdefault(tag._replace(region=_ANY), offer)
        self._found.setdefault(LanguageTag(tag.language, "", _ANY), offer)

    def _add_nearest(self, tag: LanguageTag, offer: "_Offer") -> None:
        for region in _SIMILAR.get((tag.language, tag.region), "").split():
            self._found.setdefault(tag._replace(region=region), offer)
        self._found.setdefault(LanguageTag(tag.language, "", tag.region), offer)
        self._found.setdefault(tag._replace(region=""), offer)
        self._found.setdefault(LanguageTag(tag.language), offer)


class _Offer(NamedTuple):
    """A code on a list. `script` is empty if the tag has none, as that of a language without a region."""

    code: str
    script: str


@lru_cache(256)
def listed_languages(languages: tuple[str, ...]) -> Languages:
    """Return the languages on the list of a config. An entry that is no language tag includes nothing."""
    return Languages({tag: tag for tag in languages if _is_well_formed(tag)}, nearest=False)


def _is_well_formed(code: str) -> bool:
    try:
        parse_tag(code)
    except ValueError:
        return False
    return True


def _with_script(tag: LanguageTag) -> LanguageTag:
    """Add the usual script, which a tag with a region implies."""
    return tag._replace(script=tag.script or _script(tag.language, tag.region)) if tag.region else tag


def _script(language: str, region: str) -> str:
    return _SCRIPTS_OF_REGIONS.get((language, region)) or _SCRIPTS.get(language, "")
