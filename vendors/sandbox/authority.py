"""The certificate authority of the sandbox, which only configs of development accept."""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ROOT = """\
-----BEGIN CERTIFICATE-----
MIIBwTCCAWegAwIBAgIUWnoi3svAKc9Wg366aEyUf32AtPYwCgYIKoZIzj0EAwIw
PDEXMBUGA1UECgwOUGFybGV5IHNhbmRib3gxITAfBgNVBAMMGEF1dGhvcml0eSBv
ZiB0aGUgc2FuZGJveDAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFow
PDEXMBUGA1UECgwOUGFybGV5IHNhbmRib3gxITAfBgNVBAMMGEF1dGhvcml0eSBv
ZiB0aGUgc2FuZGJveDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABA9Rzn9WP3gj
Yd/rU0lxP7mvq1WGGASiWXj44OnTHKF6Rp3iUAXepMF/piqUZM4zM3WxHd77/6J4
vGZjnsq2X7ajRTBDMBIGA1UdEwEB/wQIMAYBAf8CAQEwDgYDVR0PAQH/BAQDAgEG
MB0GA1UdDgQWBBRpzFH4lWIVxY7WaYYilf/7JKS1DzAKBggqhkjOPQQDAgNIADBF
AiAUlcFlKrNaOf00bhehsDabREtXpaA6IJMaGCPKBEevpwIhANznMz7E01/jck7U
zGGzyiBeiok/hVYYLP5KLVIdhFNx
-----END CERTIFICATE-----
"""
"""What configs name as their `certificate_ca`."""

_ROOT_KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg3kRZFDiP+LbApsth
7RFeHRTkOhWnQKAeBhcHbRbnl9yhRANCAAQPUc5/Vj94I2Hf61NJcT+5r6tVhhgE
oll4+ODp0xyhekad4lAF3qTBf6YqlGTOMzN1sR3e+/+ieLxmY57Ktl+2
-----END PRIVATE KEY-----
"""
"""Public like everything in this file. It signs nothing that a config without `ROOT` accepts."""

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True)
class Issuer:
    """A certificate that issues others, and its key."""

    certificate: x509.Certificate
    key: Key


@cache
def root() -> Issuer:
    key = load_pem_private_key(_ROOT_KEY.encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey), "written so above"
    return Issuer(x509.load_pem_x509_certificate(ROOT.encode()), key)


@cache
def intermediate() -> Issuer:
    """Return an authority under the root, as public ones have. Its key is new in each process."""
    key = ec.generate_private_key(ec.SECP256R1())
    return Issuer(issue(key, "Intermediate authority of the sandbox", issuer=root(), authority=True), key)


def issue(
    key: Key,
    name: str,
    *,
    issuer: Issuer | None,
    days: tuple[int, int] = (-1, 365),
    alternatives: Sequence[x509.GeneralName] = (),
    authority: bool = False,
) -> x509.Certificate:
    """Return a certificate that is valid between two days from today. Without an issuer, it is self-signed."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
        .add_extension(_usage(authority=authority), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key((issuer.key if issuer else key).public_key()),
            critical=False,
        )
    )
    if authority:
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    else:
        server = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        builder = builder.add_extension(server, critical=False)
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(issuer.key if issuer else key, SHA256())


@cache
def tls_context(host: str) -> ssl.SSLContext:
    """Return the context of a server at `host`, with a certificate of the authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    try:
        names.append(x509.IPAddress(ip_address(host)))
    except ValueError:
        names.append(x509.DNSName(host))
    certificate = issue(key, "localhost", issuer=root(), alternatives=list(dict.fromkeys(names)))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with TemporaryDirectory() as folder:  # The module ssl reads keys from files only.
        file = Path(folder, "server.pem")
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        file.write_bytes(secret + certificate.public_bytes(Encoding.PEM))
        context.load_cert_chain(file)
    return context


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )
