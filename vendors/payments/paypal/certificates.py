"""The certificates with which PayPal signs webhooks: where they may come from, and who must have issued them."""

import re
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.x509 import (
    BasicConstraints,
    Certificate,
    ExtendedKeyUsage,
    load_der_x509_certificate,
    load_pem_x509_certificates,
)
from cryptography.x509.oid import NameOID
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    Policy,
    PolicyBuilder,
    Store,
    VerificationError,
)

from streams.kept_errors import copy_of
from streams.wire.errors import listed
from streams.wire.ids import sha256_hex
from vendors.errors import Garbled
from vendors.http.fetched import Fetched, download
from vendors.http.kept import Kept
from vendors.http.transport import VendorHttp

_URL = re.compile(r"https://([a-z0-9.-]{1,253})(:[0-9]{1,5})?(?:/[A-Za-z0-9_.~-]{1,200}){1,10}", re.ASCII)
_ADDRESS = re.compile(r"[0-9.]+", re.ASCII)
CERTIFICATE_HOSTS = ("api.paypal.com", "api-m.paypal.com", "api.sandbox.paypal.com", "api-m.sandbox.paypal.com")
"""The hosts at which PayPal's certificates are."""
_OWNERS = ".paypal.com"
_MAX_BYTES = 16 * 1024
_MAX_URLS = 64
_MAX_AGE_S = 24 * 3600
_MAX_CHAIN = 4
_MIN_KEY_BITS = 2048


class NotGenuine(Exception):
    """PayPal has not sent the webhook to us, or not recently. The message says why."""


Chain = Sequence[Certificate]
"""A certificate, and the chain after it."""
Limited = Callable[[Callable[[], Awaitable[Chain]]], Awaitable[Chain]]
"""Makes a call within limits, and raises `VendorError` if they are reached."""


async def unlimited(fetch: Callable[[], Awaitable[Chain]]) -> Chain:
    """Make a call without limits."""
    return await fetch()


@dataclass(slots=True)
class _Known:
    """A certificate that was fetched."""

    chain: Chain = ()
    expires_at: float = 0


class WebhookCertificates:
    """The fetched certificates, kept in the `VendorHttp` for at most 24 hours. `clock` returns seconds.

    Anybody can invent any number of URLs, so certificates that are being fetched do not replace those that are
    kept.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: Kept[_Known] = Kept(_Known, most=_MAX_URLS)
        self._fetching: Kept[Fetched[Chain]] = Kept(Fetched, most=_MAX_URLS)

    async def find(
        self,
        http: VendorHttp,
        vendor: str,
        url: str,
        *,
        hosts: Sequence[str],
        authorities: str,
        now: datetime,
        limited: Limited = unlimited,
    ) -> RSAPublicKey:
        """Return the public key at `url`, which the sender of a webhook has named.

        `hosts` are those from which certificates may come. `authorities`, in PEM format, replace the public ones.
        A certificate that is not known is fetched by `limited`. Raise `NotGenuine`, or `VendorError` if it cannot
        be fetched.
        """
        check_url(url, hosts=hosts, own_authorities=bool(authorities))
        key = (url, sha256_hex(authorities.encode()))
        known = self._known.known(http, *key)
        if known is None or self._clock() >= known.expires_at:
            fetched = self._fetching.of(http, *key)
            await fetched.fetch(lambda: limited(lambda: _certificates(http, vendor, url, authorities=authorities)))
            self._fetching.forget(http, *key)
            if fetched.error is not None:
                raise copy_of(fetched.error)
            assert fetched.value is not None, "the fetch succeeded"
            known = self._known.of(http, *key)
            known.chain, known.expires_at = fetched.value, self._clock() + _MAX_AGE_S
        leaf, *chain = known.chain
        return check_chain(leaf, chain, authorities=authorities, now=now)


WEBHOOK_CERTIFICATES = WebhookCertificates()
"""The certificates that all apps of the process share."""


def check_url(url: str, *, hosts: Sequence[str], own_authorities: bool) -> None:
    """Raise `NotGenuine` unless a certificate may be fetched from `url`.

    The form is compared with the whole text, because parsers differ in what they take for the host. IP addresses,
    and ports that `hosts` do not name, are only for development, which has authorities of its own.
    """
    found = _URL.fullmatch(url)
    host, port = (found[1], found[2] or "") if found else ("", "")
    if not (host + port in hosts or (own_authorities and host in hosts)):
        raise NotGenuine(f"the certificate's URL {listed([url])} does not name one of certificate_hosts")
    if not own_authorities and _ADDRESS.fullmatch(host):
        raise NotGenuine(f"the certificate's URL {listed([url])} names an IP address")


async def _certificates(http: VendorHttp, vendor: str, url: str, *, authorities: str) -> Chain:
    raw, _ = await download(http, vendor, url, limit_bytes=_MAX_BYTES, authorities=authorities)
    try:
        return load_pem_x509_certificates(raw)
    except ValueError:
        raise Garbled(vendor, "sent a document that is not a certificate") from None


def check_chain(
    leaf: Certificate, chain: Sequence[Certificate], *, authorities: str, now: datetime
) -> RSAPublicKey:
    """Return the key of `leaf`. Raise `NotGenuine` unless a known authority has issued it to PayPal."""
    roots = _own_roots(authorities) if authorities else _public_roots()
    policy = _own_policy() if authorities else _public_policy()
    builder = PolicyBuilder().time(now).store(Store(list(roots))).max_chain_depth(_MAX_CHAIN)
    verifier = builder.extension_policies(ca_policy=policy, ee_policy=ExtensionPolicy.permit_all())
    try:
        if not (authorities and leaf in roots and _is_valid(leaf, now)):
            verifier.build_client_verifier().verify(leaf, list(chain))
    except VerificationError:
        raise NotGenuine("the certificate is not issued by a known authority, or not valid at this time") from None
    # Public authorities issue certificates to anybody. Those of development do not.
    names = [str(name.value) for name in leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if not authorities and not (names and all(name.endswith(_OWNERS) for name in names)):
        raise NotGenuine("the certificate does not belong to PayPal")
    public_key = leaf.public_key()
    if not isinstance(public_key, RSAPublicKey) or public_key.key_size < _MIN_KEY_BITS:
        raise NotGenuine("the certificate has no RSA key of at least 2048 bits")
    return public_key


def _is_valid(certificate: Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc


def _public_policy() -> ExtensionPolicy:
    # Intermediate authorities may be restricted to certificates of TLS servers, such as this one.
    defaults = ExtensionPolicy.webpki_defaults_ca()
    return defaults.may_be_present(ExtendedKeyUsage, Criticality.AGNOSTIC, None)


def _own_policy() -> ExtensionPolicy:
    """Return the policy for authorities that developers have made, which may lack extensions of public ones."""
    return ExtensionPolicy.permit_all().require_present(BasicConstraints, Criticality.AGNOSTIC, _is_authority)


def _is_authority(_: Policy, __: Certificate, constraints: BasicConstraints) -> None:
    if not constraints.ca:
        raise ValueError("is not an authority")


@lru_cache(maxsize=16)
def _own_roots(authorities: str) -> Sequence[Certificate]:
    return load_pem_x509_certificates(authorities.encode())


@cache
def _public_roots() -> Sequence[Certificate]:
    """Return the authorities that the system trusts for TLS."""
    context = ssl.create_default_context()
    return [load_der_x509_certificate(der) for der in context.get_ca_certs(binary_form=True)]
