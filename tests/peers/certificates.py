"""Certificates of servers, signed by an authority of the test."""

import ssl
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.calendar.clock import utc_now

PEM, PLAIN = serialization.Encoding.PEM, serialization.NoEncryption()


class Authority:
    """Signs certificates."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Authority of the test")])
        root = self._signed(self._name, self._key.public_key(), days=(-1, 1), ca=True)
        self.path = folder / "authority.pem"
        self.path.write_bytes(root.public_bytes(PEM))

    def server(self, host: str, *, days: tuple[int, int] = (-1, 1)) -> ssl.SSLContext:
        """The TLS of a server whose certificate is for `host` and valid between two days from today."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
        made = self._signed(name, key.public_key(), days=days, host=host)
        path = self._folder / "server.pem"
        written = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, PLAIN)
        path.write_bytes(written + made.public_bytes(PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        *,
        days: tuple[int, int],
        host: str = "",
        ca: bool = False,
    ) -> x509.Certificate:
        now, (first, last) = utc_now(), days
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + timedelta(days=first))
            .not_valid_after(now + timedelta(days=last))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if host:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        return builder.sign(self._key, hashes.SHA256())
