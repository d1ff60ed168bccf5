"""`python -m app doctor` reports each fault on the way to vendors and mail servers, and from the outside."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from storage.operators.audit import COMMAND
from storage.operators.doctor_reports import Finding
from streams.wire.codec import dumps
from tests.app.doctor.doctor import BROKEN, DOUBTFUL, GOOD, Doctor, bad_points, point
from tests.app.mail.smtp_servers import WRONG_PASSWORD, SmtpServer
from tests.peers.certificates import Authority
from tests.running.servers import Databases, Server, new_server
from vendors.sandbox.dns import Names, dns_server
from vendors.signin import catalog

HOST = "api.vendor.test"


@pytest.fixture(scope="module")
async def module_server(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    async with new_server(databases, tmp_path_factory.mktemp("data"), seeded=False) as running:
        yield running


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.path))


@asynccontextmanager
async def listening(tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Accept connections at a port of this machine."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that is bound, so that nobody else listens there, and refuses connections."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


async def put(server: Server, kind: str, name: str, value: dict[str, Any]) -> None:
    configs = server.services.configs
    await configs.put("default", "apps", "default", {"title": "App"}, author="test", origin=COMMAND)
    await configs.put("default", kind, name, value, author="test", origin=COMMAND)


async def way_to(server: Server, url: str, *, tls: ssl.SSLContext | None = None) -> Finding:
    """Return what is found about a vendor at `url`, whose name a DNS server of the test knows."""
    await put(server, "vendor_accounts", "vendor", {"platform": "openai", "base_url": url, "api_key": "sk-a"})
    async with dns_server(Names({HOST: ["127.0.0.1"]})) as dns:
        here = {} if tls is None else {"tls": tls}
        (found,) = await Doctor(server).examine("vendors", here=here, dns_servers=(dns,))
    assert "default/vendor_accounts/vendor" in found.seen
    return found


async def test_a_vendor_that_is_reached_by_tls_is_good(
    module_server: Server, authority: Authority, trusting: ssl.SSLContext
) -> None:
    async with listening(authority.server(HOST, days=(-1, 60))) as port:
        found = await way_to(module_server, f"https://{HOST}:{port}/v1", tls=trusting)
    assert (found.state, found.point) == (GOOD, f"https://{HOST}:{port}")


async def test_a_name_that_does_not_exist_is_broken(module_server: Server) -> None:
    found = await way_to(module_server, "https://missing.vendor.test/v1")
    assert found.state is BROKEN
    assert "cannot be resolved" in found.seen
    assert "PARLEY_DNS" in found.fix


async def test_a_port_that_refuses_connections_is_broken(module_server: Server, closed_port: int) -> None:
    found = await way_to(module_server, f"https://{HOST}:{closed_port}/v1")
    assert found.state is BROKEN
    assert "firewall" in found.fix


@pytest.mark.parametrize(("host", "days"), [("other.vendor.test", (-1, 60)), (HOST, (-9, -1))])
async def test_a_certificate_that_is_refused_is_broken(
    host: str, days: tuple[int, int], module_server: Server, authority: Authority, trusting: ssl.SSLContext
) -> None:
    async with listening(authority.server(host, days=days)) as port:
        found = await way_to(module_server, f"https://{HOST}:{port}/v1", tls=trusting)
    assert found.state is BROKEN
    assert "its certificate is refused" in found.seen


async def test_an_authority_that_is_not_trusted_is_named(module_server: Server, authority: Authority) -> None:
    async with listening(authority.server(HOST)) as port:
        found = await way_to(module_server, f"https://{HOST}:{port}/v1")
    assert found.state is BROKEN
    assert "SSL_CERT_FILE" in found.fix


async def test_a_certificate_that_expires_soon_is_doubtful(
    module_server: Server, authority: Authority, trusting: ssl.SSLContext
) -> None:
    async with listening(authority.server(HOST, days=(-1, 3))) as port:
        found = await way_to(module_server, f"https://{HOST}:{port}/v1", tls=trusting)
    assert found.state is DOUBTFUL
    assert "expires in 2 days" in found.seen


async def test_a_vendor_without_tls_is_doubtful(module_server: Server) -> None:
    async with listening() as port:
        found = await way_to(module_server, f"http://{HOST}:{port}/v1")
        local = await way_to(module_server, f"http://127.0.0.1:{port}/v1")
    assert (found.state, local.state) == (DOUBTFUL, GOOD)
    assert "without TLS" in found.seen


def test_the_hosts_of_sign_in_providers_are_those_of_their_clients() -> None:
    folder = Path(catalog.__file__).parent
    for provider, hosts in catalog.HOSTS.items():
        module = {"wechat_mini": "wechat", "play_games": "google"}.get(provider, provider)
        text = (folder / f"{module}.py").read_text()
        assert [host for host in hosts if f'"{host}"' not in text] == [], provider
    assert catalog.HOSTS.keys() == catalog.PROVIDERS.keys() - {"game_center"}


async def test_mail_servers_are_tried(module_server: Server, closed_port: int) -> None:
    server, ascii_only = SmtpServer(), SmtpServer()
    account = {"host": "127.0.0.1", "tls": "none", "from": "Parley <parley@example.com>"}
    async with server.listening(), ascii_only.listening(smtputf8=False):
        await put(module_server, "mail_accounts", "good", {**account, "port": server.port, "smtputf8": True})
        await put(module_server, "mail_accounts", "closed", {**account, "port": closed_port})
        await put(module_server, "mail_accounts", "plain", {**account, "port": server.port, "tls": "starttls"})
        login = {"username": "parley", "password": WRONG_PASSWORD}
        await put(module_server, "mail_accounts", "login", {**account, "port": server.port, **login})
        await put(module_server, "mail_accounts", "ascii", {**account, "port": ascii_only.port, "smtputf8": True})
        findings = await Doctor(module_server).examine("mail")
    assert server.accepted == []
    assert point(findings, "default/good").state is GOOD
    assert bad_points(findings) == {"default/closed", "default/plain", "default/login", "default/ascii"}
    assert "does not support SMTPUTF8" in point(findings, "default/ascii").seen
    assert "STARTTLS" in point(findings, "default/plain").seen


async def test_a_mail_server_with_an_ipv6_address_is_named_by_its_url(
    module_server: Server, closed_port: int
) -> None:
    account = {"host": "::1", "tls": "none", "port": closed_port, "from": "parley@example.com"}
    await put(module_server, "mail_accounts", "closed", account)
    found = point(await Doctor(module_server).examine("mail"), "default/closed")
    assert found.state is BROKEN
    assert found.seen.startswith(f"smtp://[::1]:{closed_port}: ")


async def test_mails_without_a_public_url_are_broken(module_server: Server) -> None:
    account = {"host": "127.0.0.1", "tls": "none", "port": 1, "from": "parley@example.com"}
    await put(module_server, "mail_accounts", "closed", account)
    findings = await Doctor(module_server).examine("mail", "outside", has_public_url=False)
    assert point(findings, "links").fix == "set it to the URL at which users reach this server"
    assert point(findings, "PARLEY_PUBLIC_URL").state is DOUBTFUL


async def test_the_ports_of_processes_are_read(module_server: Server, closed_port: int) -> None:
    doctor, port = Doctor(module_server), module_server.services.settings.port
    running = await doctor.examine("outside", metrics_port=port, worker_port=closed_port)
    assert point(running, "server 0").state is GOOD
    assert "open files are allowed" in point(running, "server 0").seen
    assert point(running, "worker").state is BROKEN
    assert point(await doctor.examine("outside", metrics_port=closed_port), "server 0").state is BROKEN


async def test_processes_of_another_version_are_doubtful(module_server: Server, closed_port: int) -> None:
    port = module_server.services.settings.port

    async def ready(request: web.Request) -> web.Response:
        return web.json_response({"status": "ok", "version": "0.0.1", "causes": {}})

    async def metrics(request: web.Request) -> web.Response:
        return web.Response()

    old = web.Application()
    old.add_routes([web.get("/readyz", ready), web.get("/metrics", metrics)])
    doctor = Doctor(module_server)
    async with TestServer(old) as worker:
        mixed = await doctor.examine("outside", metrics_port=port, worker_port=worker.port)
    assert point(mixed, "versions").state is DOUBTFUL
    assert "worker: 0.0.1" in point(mixed, "versions").seen
    alone = await doctor.examine("outside", metrics_port=port, worker_port=closed_port)
    assert "versions" not in {finding.point for finding in alone}


async def test_a_process_that_drains_is_broken(module_server: Server) -> None:
    supervisor = module_server.services.supervisor
    supervisor.draining = True
    try:
        port = module_server.services.settings.port
        found = point(await Doctor(module_server).examine("outside", metrics_port=port), "server 0")
    finally:
        supervisor.draining = False
    assert found.state is BROKEN
    assert "draining" in found.seen


async def test_a_server_that_nobody_reaches_is_broken(module_server: Server, closed_port: int) -> None:
    findings = await Doctor(module_server).examine("outside", "proxy", public_url=f"http://127.0.0.1:{closed_port}")
    assert point(findings, "answer").state is BROKEN
    assert point(findings, "stream").state is BROKEN


@asynccontextmanager
async def holding_uploads(*, passing: int = 0, flushed_s: float = 0) -> AsyncIterator[str]:
    """Yield the URL of a server that holds all uploads, and events too after the first `passing` streams.

    Events are held to the end, or written every `flushed_s` seconds.
    """
    streams = count()

    async def probe(request: web.Request) -> web.StreamResponse:
        claimed_ms = 0 if next(streams) < passing else 200  # All ticks are written at once.
        await request.read()
        response = web.StreamResponse(headers={"Server": "parley"})
        await response.prepare(request)

        async def write(name: str, at_ms: int = 0, *, size: int = 0) -> None:
            content = dumps({"content": {"at_ms": at_ms, "bytes": size}})
            await response.write(f"event: {name}\ndata: ".encode() + content + b"\n\n")

        await write("start")
        await write("received", size=100)
        for tick in range(5):
            if flushed_s and tick == 4:  # The others were written before the first flush.
                await asyncio.sleep(flushed_s)
            await write("tick", claimed_ms * tick)
        await write("end")
        return response

    app = web.Application()
    app.router.add_post("/bp/ai/probe", probe)
    async with TestServer(app) as server:
        yield str(server.make_url("/")).rstrip("/")


async def test_events_that_passed_once_are_not_held_back(module_server: Server) -> None:
    async with holding_uploads(passing=2) as url:
        findings = await Doctor(module_server).examine("proxy", public_url=url)
    assert bad_points(findings) == {"uploads"}


async def test_events_that_never_pass_are_held_back(module_server: Server) -> None:
    async with holding_uploads(passing=0) as url:
        findings = await Doctor(module_server).examine("proxy", public_url=url)
    assert bad_points(findings) == {"uploads", "events"}
    assert point(findings, "events").state is BROKEN


async def test_events_that_pass_together_every_while_are_held_back(module_server: Server) -> None:
    async with holding_uploads(flushed_s=0.7) as url:
        findings = await Doctor(module_server).examine("proxy", public_url=url)
    assert bad_points(findings) == {"uploads", "events"}
    assert "up to 0.6" in point(findings, "events").seen


async def test_another_server_at_the_public_url_is_broken(module_server: Server) -> None:
    async with listening() as port:
        findings = await Doctor(module_server).examine("outside", public_url=f"http://127.0.0.1:{port}")
    assert point(findings, "answer").state is BROKEN


async def test_metrics_that_anybody_can_read_are_doubtful(module_server: Server) -> None:
    findings = await Doctor(module_server).examine("outside", env="production")
    assert point(findings, "/metrics").state is DOUBTFUL
    assert point(findings, "/docs").state is DOUBTFUL


_SPF, _DMARC = "v=spf1 include:mail.vendor.test -all", "v=DMARC1; p=none"
_KEY = "v=DKIM1; p=" + "A" * 300


@pytest.mark.parametrize(
    ("texts", "bad"),
    [
        ({"": [_SPF, "a=b"], "_dmarc.": [_DMARC], "s1._domainkey.": [_KEY]}, {}),
        ({"": ["v=spf10 -all"]}, {"SPF": DOUBTFUL, "DKIM": DOUBTFUL, "DMARC": DOUBTFUL}),
        (
            {"": [_SPF, "v=spf1 ~all"], "_dmarc.": [_DMARC, "v=DMARC1; p=reject"], "s1._domainkey.": [_KEY]},
            {"SPF": BROKEN, "DMARC": DOUBTFUL},
        ),
    ],
)
async def test_the_domains_of_senders_are_checked(
    texts: dict[str, list[str]], bad: dict[str, Any], module_server: Server
) -> None:
    account = {"host": "127.0.0.1", "tls": "none", "port": 1, "from": "Parley <parley@parley.co.uk>"}
    await put(module_server, "mail_accounts", "closed", account)
    names = Names(texts={f"{name}parley.co.uk": values for name, values in texts.items()})
    async with dns_server(names) as dns:
        findings = await Doctor(module_server).examine("senders", dns_servers=(dns,))
    for record in ("SPF", "DKIM", "DMARC"):
        assert point(findings, f"{record} of parley.co.uk").state is bad.get(record, GOOD)


async def test_the_domain_above_that_of_a_sender_may_have_the_dmarc_record(module_server: Server) -> None:
    account = {"host": "127.0.0.1", "tls": "none", "port": 1, "from": "parley@mail.parley.co.uk"}
    await put(module_server, "mail_accounts", "closed", account)
    async with dns_server(Names(texts={"_dmarc.parley.co.uk": [_DMARC]})) as dns:
        findings = await Doctor(module_server).examine("senders", dns_servers=(dns,))
    assert point(findings, "DMARC of mail.parley.co.uk").seen == f"_dmarc.parley.co.uk: {_DMARC}"


async def test_senders_are_not_checked_without_the_dns(module_server: Server, closed_port: int) -> None:
    account = {"host": "127.0.0.1", "tls": "none", "port": 1, "from": "parley@parley.co.uk"}
    await put(module_server, "mail_accounts", "closed", account)
    (found,) = await Doctor(module_server).examine("senders", dns_servers=(("127.0.0.1", closed_port),))
    assert (found.state, found.point) == (DOUBTFUL, "DNS")


async def test_the_dns_is_not_asked_for_domains_that_are_not_in_it(module_server: Server) -> None:
    names = Names()
    for address in ("parley@example.com", "parley@mail.example.org", "parley@localhost", "parley@parley.test"):
        account = {"host": "127.0.0.1", "tls": "none", "port": 1, "from": address}
        await put(module_server, "mail_accounts", "closed", account)
        async with dns_server(names) as dns:
            assert await Doctor(module_server).examine("senders", dns_servers=(dns,)) == []
    assert names.asked == []
