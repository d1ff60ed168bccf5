"""The certificates of the sandbox's Game Center. Only configs of the sandbox accept their authority."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import NameOID

ROOT = """\
-----BEGIN CERTIFICATE-----
MIIB2TCCAX+gAwIBAgIUSTdDy4HfGrdMK15tfw767Nt3EAswCgYIKoZIzj0EAwIw
SDEXMBUGA1UECgwOUGFybGV5IHNhbmRib3gxLTArBgNVBAMMJEdhbWUgQ2VudGVy
IGF1dGhvcml0eSBvZiB0aGUgc2FuZGJveDAgFw0yMDAxMDEwMDAwMDBaGA8yMTIw
MDEwMTAwMDAwMFowSDEXMBUGA1UECgwOUGFybGV5IHNhbmRib3gxLTArBgNVBAMM
JEdhbWUgQ2VudGVyIGF1dGhvcml0eSBvZiB0aGUgc2FuZGJveDBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABOsNMQzTPc1FigkxWnjD1ZmeVpjOmldmtEWkPZJVcR8E
lmum7ICqCfyo5f95HvU5YNl9j5bpombygW7JD+JduZ2jRTBDMBIGA1UdEwEB/wQI
MAYBAf8CAQAwDgYDVR0PAQH/BAQDAgEGMB0GA1UdDgQWBBRbGpyESEtY07p58S+c
tWBzmdzUzjAKBggqhkjOPQQDAgNIADBFAiEA7bMoaTbKGW5ez32OjgMvmZHiezUV
+nDlnR9HXSeL56wCIEBTy0lPfg8u5YPcXeYuTSer5crGUuVxngVOANq3EC4m
-----END CERTIFICATE-----
"""
"""The `key_roots` of configs."""

_ROOT_KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgfaP5mT3JiVROKtbd
MI4bgFMaAEby9r91tB3LFtNh/+ihRANCAATrDTEM0z3NRYoJMVp4w9WZnlaYzppX
ZrRFpD2SVXEfBJZrpuyAqgn8qOX/eR71OWDZfY+W6aJm8oFuyQ/iXbmd
-----END PRIVATE KEY-----
"""
"""Public, like everything in this file. Configs without `ROOT` accept nothing that it signs."""

_APPLE = "Apple Inc."
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@cache
def signing_key() -> rsa.RSAPrivateKey:
    """Return the key that signs the players' ids. It is generated once per process."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def certificate(name: str) -> bytes | None:
    """Return the certificate `name`, or None if there is none. All but `gc-prod-10` have a fault."""
    make = _CERTIFICATES.get(name)
    return make() if make else None


def _issued(
    *, owner: str = _APPLE, days: tuple[int, int] = (-1, 365), key: Key | None = None, self_signed: bool = False
) -> bytes:
    """Return a certificate that is valid between two days from today."""
    subject = x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, owner), x509.NameAttribute(NameOID.COMMON_NAME, owner)]
    )
    signed = key or signing_key()
    root = x509.load_pem_x509_certificate(ROOT.encode())
    root_key = load_pem_private_key(_ROOT_KEY.encode(), None)
    assert isinstance(root_key, ec.EllipticCurvePrivateKey), "written so above"
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if self_signed else root.subject)
        .public_key(signed.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    return builder.sign(signed if self_signed else root_key, SHA256()).public_bytes(Encoding.DER)


_CERTIFICATES: dict[str, Callable[[], bytes]] = {
    "gc-prod-10": _issued,
    "expired": lambda: _issued(days=(-30, -1)),
    "not-yet-valid": lambda: _issued(days=(1, 30)),
    "self-signed": lambda: _issued(self_signed=True),
    "other-owner": lambda: _issued(owner="Orange Inc."),
    "elliptic": lambda: _issued(key=ec.generate_private_key(ec.SECP256R1())),
    "garbage": lambda: b"\x30\x82" + b"garbage" * 20,
    "empty": lambda: b"",
    "huge": lambda: _issued() + bytes(1024 * 1024),
}
