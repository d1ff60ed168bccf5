"""A real nginx with the site of `deploy/nginx.conf`, edited like an operator would."""

import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import psutil
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from app.process.children import ending_with_parent
from tests.calendar.clock import utc_now
from tests.code.source_files import ROOT
from tests.deploy.edits import edited
from tests.running.servers import listening_socket

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
SITE = ROOT / "deploy" / "nginx.conf"
_CERTIFICATES = "/etc/letsencrypt/live/parley.example.com"
_END_S = 10

# Debian's configuration, with gzip for all content types, as an operator may configure it.
_MAIN = """
daemon off;
{user}
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 768; }}
http {{
    sendfile on;
    tcp_nopush on;
    gzip on;
    gzip_types text/event-stream application/json;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


@dataclass(frozen=True)
class Nginx:
    url: str
    tls_url: str
    """The HTTPS URL. The certificate is self-signed."""
    access_log: Path
    _site: Path
    _process: subprocess.Popen[bytes]

    def reload(self, edits: Mapping[str, str]) -> None:
        """Edit the site, and have the running nginx read it, as `systemctl reload` does."""
        self._site.write_text(edited(self._site, edits))
        self._process.send_signal(signal.SIGHUP)

    @property
    def workers(self) -> int:
        """The number of worker processes, including those that only end their last requests."""
        return len(psutil.Process(self._process.pid).children())


@contextmanager
def running_nginx(
    folder: Path, parley: str, *, kept_s: int = 15, edits: Mapping[str, str] | None = None
) -> Iterator[Nginx]:
    """Run nginx with TLS in front of `parley` (host:port). It writes only below `folder`.

    `kept_s`: how long it keeps an idle connection to Parley. `edits`: lines of the site and what replaces them.
    """
    with listening_socket() as plain, listening_socket() as tls:
        addresses = ["{}:{}".format(*listener.getsockname()) for listener in (plain, tls)]
        command = [
            str(NGINX),
            "-p",
            str(folder),
            "-c",
            str(_configured(folder, parley, *addresses, kept_s=kept_s, edits=edits or {})),
        ]
        process = subprocess.Popen(
            command,
            env={
                "NGINX": f"{plain.fileno()};{tls.fileno()};"
            },  # nginx inherits the sockets, as it does from a predecessor.
            pass_fds=[plain.fileno(), tls.fileno()],
            process_group=0,
            preexec_fn=ending_with_parent(signal.SIGTERM),  # noqa: PLW1509 - two system calls, no lock
        )
    try:
        urls = f"http://{addresses[0]}", f"https://{addresses[1]}"
        yield Nginx(*urls, folder / "parley.log", folder / "site.conf", process)
    finally:
        process.terminate()
        assert process.wait(_END_S) == 0


def _configured(folder: Path, parley: str, plain: str, tls: str, *, kept_s: int, edits: Mapping[str, str]) -> Path:
    _write_certificate(folder)
    of_the_test = {
        "127.0.0.1:8080": parley,
        "keepalive_timeout 15s;": f"keepalive_timeout {kept_s}s;",
        "listen 80 ": f"listen {plain} ",
        "#listen 443 ": f"listen {tls} ",
        "#ssl_certificate ": "ssl_certificate ",
        "#ssl_certificate_key ": "ssl_certificate_key ",
        "#ssl_session_cache ": "ssl_session_cache ",
        f"{_CERTIFICATES}/fullchain.pem": f"{folder}/fullchain.pem",
        f"{_CERTIFICATES}/privkey.pem": f"{folder}/privkey.pem",
        "/var/log/nginx/": f"{folder}/",
    }
    (folder / "site.conf").write_text(edited(SITE, {**of_the_test, **edits}))
    # The worker keeps the user of the tests, which owns `folder`.
    user = f"user {pwd.getpwuid(0).pw_name};" if os.geteuid() == 0 else ""
    main = folder / "nginx.conf"
    main.write_text(_MAIN.format(folder=folder, user=user))
    return main


def _write_certificate(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "parley.example.com")])
    now = utc_now()
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )
    (folder / "fullchain.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "privkey.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
