"""The end of the certificate with which clients are connected, as a worker sees it at the public URL."""

import asyncio
import ssl
from urllib.parse import urlsplit

import structlog
from cryptography import x509
from prometheus_client import Gauge

from streams.tasks import pause, stopping
from streams.wire.network import network_cause

log = structlog.get_logger()

EVERY_S = 3600.0
_WITHIN_S = 10
_PORT = 443
CERTIFICATE_END = Gauge(
    "parley_certificate_end_timestamp_seconds",
    "When the certificate of the public URL ends, in seconds since 1970",
    ["host"],
)


async def watch_certificate(public_url: str, *, every_s: float = EVERY_S) -> None:
    """Read the end of the certificate until cancelled, once an hour. A certificate that has ended is read too.

    If the server cannot be reached, the gauge keeps its value: a worker may be where the public URL leads nowhere.
    """
    parts = urlsplit(public_url)
    if parts.scheme != "https" or parts.hostname is None:
        return
    while not stopping():
        try:
            async with asyncio.timeout(_WITHIN_S):
                end = await _certificate_end(parts.hostname, parts.port or _PORT)
        except (OSError, TimeoutError, ValueError) as error:
            log.info("certificate.not_read", host=parts.hostname, cause=network_cause(error) or str(error))
        else:
            CERTIFICATE_END.labels(parts.hostname).set(end)
        await pause(every_s)


async def _certificate_end(host: str, port: int) -> float:
    """Return when the certificate of a server ends. Nothing is sent to it, so it need not be verified."""
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection(host, port, ssl=tls, server_hostname=host)
    try:
        raw = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    finally:
        writer.transport.abort()
    return x509.load_der_x509_certificate(raw).not_valid_after_utc.timestamp()
