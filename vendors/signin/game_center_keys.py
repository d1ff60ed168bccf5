"""Checks the URLs, the issuers and the owners of Game Center's signing certificates."""

import re
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.x509 import (
    Certificate,
    ExtendedKeyUsage,
    load_der_x509_certificate,
    load_pem_x509_certificate,
    load_pem_x509_certificates,
)
from cryptography.x509.oid import NameOID
from cryptography.x509.verification import Criticality, ExtensionPolicy, PolicyBuilder, Store, VerificationError

from streams.kept_errors import copy_of
from streams.wire.errors import listed
from vendors.errors import Garbled, Refused
from vendors.http.fetched import Fetched, download
from vendors.http.kept import Kept
from vendors.http.transport import VendorHttp
from vendors.signin.apps import invalid_config
from vendors.signin.protocols import ProofRefused, SignInApp

KEY_HOSTS = ("static.gc.apple.com",)
_URL = re.compile(r"https://([a-z0-9.-]{1,253})(/public-key/[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}\.cer)", re.ASCII)
_ROOTS = Path(__file__).with_name("game_center_roots.pem")
"""DigiCert's root, and the intermediate authority that issues Game Center's certificates and is not sent with
them."""
_OWNERS = frozenset({"Apple Inc.", "Apple, Inc."})
_MAX_BYTES = 10 * 1024
_MAX_URLS = 64
_MAX_AGE_S = 24 * 3600
_MAX_CHAIN = 3
_PEM = b"-----BEGIN"
_RETRYABLE_STATUSES = frozenset({408, 429})


class _Entry(Fetched[Certificate]):
    expires_at = 0.0


class GameCenterKeys:
    """The verified certificates, kept in the `VendorHttp` for at most 24 hours. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: Kept[_Entry] = Kept(_Entry, most=_MAX_URLS)

    async def find(self, http: VendorHttp, app: SignInApp, url: str, *, now: datetime) -> RSAPublicKey:
        """Return the public key at `url`, which a client has sent. Raise `ProofRefused` or `VendorError`."""
        host, path = parse_key_url(app, url)
        address = f"{app.base_url or f'https://{host}'}{path}"
        key = (address, *app.key_roots)
        entry = self._entries.of(http, *key)
        if self._clock() >= entry.expires_at:
            await entry.fetch(lambda: _certificate(http, app, address, now=now))
            if entry.error is not None:
                self._entries.forget(http, *key)  # Clients may invent any number of names.
                raise copy_of(entry.error)
            entry.expires_at = self._clock() + _MAX_AGE_S
        assert entry.value is not None, "the fetch succeeded"
        if not entry.value.not_valid_before_utc <= now <= entry.value.not_valid_after_utc:
            raise certificate_refused(app, "is not valid at this time")
        public_key = entry.value.public_key()
        assert isinstance(public_key, RSAPublicKey), "checked before it was kept"
        return public_key


GAME_CENTER_KEYS = GameCenterKeys()
"""The certificates that all apps of the process share."""


def parse_key_url(app: SignInApp, url: str) -> tuple[str, str]:
    """Return the host and the path of a key's URL. Raise `ProofRefused` if it is not one of Apple's.

    The whole text is matched, because parsers differ in how they determine the host.
    """
    found = _URL.fullmatch(url)
    hosts = app.key_hosts or KEY_HOSTS
    if found is None or found[1] not in hosts:
        problem = f"{app.platform}: public_key_url is not one of Apple's key addresses"
        raise ProofRefused(problem, seen=listed([url]), allowed=list(hosts))
    return found[1], found[2]


def roots_of(app: SignInApp) -> Sequence[Certificate]:
    """Return the authorities that may have issued certificates. Raise `ConfigInvalid` if they cannot be parsed."""
    try:
        return [load_pem_x509_certificate(pem.encode()) for pem in app.key_roots] or _bundled_roots()
    except ValueError:
        raise invalid_config(app, "key_roots must be a list of certificates in PEM format") from None


def certificate_refused(
    app: SignInApp, problem: str, *, seen: object = None, allowed: object = None
) -> ProofRefused:
    problem = f"{app.platform}: the certificate at public_key_url {problem}"
    return ProofRefused(problem, seen=seen, allowed=allowed)


@cache
def _bundled_roots() -> Sequence[Certificate]:
    return load_pem_x509_certificates(_ROOTS.read_bytes())


async def _certificate(http: VendorHttp, app: SignInApp, address: str, *, now: datetime) -> Certificate:
    """Fetch and check a certificate. A client has named it, so its faults are faults of the proof."""
    try:
        raw, _ = await download(http, app.platform, address, limit_bytes=_MAX_BYTES)
        certificate = (load_pem_x509_certificate if raw.startswith(_PEM) else load_der_x509_certificate)(raw)
    except Refused as error:
        if (error.vendor_status or 0) >= 500 or error.vendor_status in _RETRYABLE_STATUSES:
            raise
        raise certificate_refused(app, f"does not exist (status {error.vendor_status})") from None
    except Garbled:
        raise certificate_refused(app, "cannot be read, or is too large") from None
    except ValueError:
        raise certificate_refused(app, "is not a certificate") from None
    _check_chain(app, certificate, now=now)
    return certificate


def _check_chain(app: SignInApp, certificate: Certificate, *, now: datetime) -> None:
    # Certificates of TLS servers have other purposes and names than this one, which signs code.
    authorities = ExtensionPolicy.webpki_defaults_ca().may_be_present(ExtendedKeyUsage, Criticality.AGNOSTIC, None)
    policy = PolicyBuilder().time(now).store(Store(list(roots_of(app)))).max_chain_depth(_MAX_CHAIN)
    verifier = policy.extension_policies(ca_policy=authorities, ee_policy=ExtensionPolicy.permit_all())
    try:
        verifier.build_client_verifier().verify(certificate, [])
    except VerificationError:
        raise certificate_refused(app, "is not issued by a known authority, or not valid at this time") from None
    owners = {name.value for name in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)}
    if not owners or not owners <= _OWNERS:
        raise certificate_refused(
            app, "does not belong to Apple", seen=sorted(map(str, owners)), allowed=sorted(_OWNERS)
        )
    if not isinstance(certificate.public_key(), RSAPublicKey):
        raise certificate_refused(app, "has no RSA key")
