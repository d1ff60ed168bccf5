"""The shipped proxies in front of three nodes: drained and dead nodes, repeated requests, and reloads."""

from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest
from aiohttp import ClientSession, TCPConnector

from tests.deploy.proxies.haproxy import HAPROXY, HAProxy, running_haproxy
from tests.deploy.proxies.nginx import NGINX, Nginx, running_nginx
from tests.deploy.proxies.three_nodes import Node, asked, goes_on, live_stream, three_nodes, without
from tests.waiting import until

needs_haproxy = pytest.mark.skipif(HAPROXY is None, reason="haproxy is not installed")
needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")

CHECKS = "check inter 1s fastinter 500ms"


@pytest.fixture
async def nodes() -> AsyncIterator[list[Node]]:
    async with three_nodes() as running:
        yield running


@pytest.fixture
async def http() -> AsyncIterator[ClientSession]:
    """A client that opens a connection for each request, as many clients do.

    On a connection that it has used before, HAProxy answers nothing if a node answers nothing.
    """
    async with ClientSession(connector=TCPConnector(force_close=True)) as session:
        yield session


def haproxy_of(folder: Path, nodes: Sequence[Node], *, checks: str):
    others = {
        f"#server parley{at} 192.0.2.1{at}:8080": f"server parley{at} {nodes[at - 1].address}" for at in (2, 3)
    }
    return running_haproxy(folder, nodes[0].address, {**others, CHECKS: checks})


@pytest.fixture
def haproxy(nodes: list[Node], tmp_path: Path) -> Iterator[HAProxy]:
    """HAProxy that checks often, which saves time."""
    with haproxy_of(tmp_path, nodes, checks="check inter 50ms fastinter 50ms") as running:
        yield running


@pytest.fixture
def unaware_haproxy(nodes: list[Node], tmp_path: Path) -> Iterator[HAProxy]:
    """HAProxy that does not check again, as if a node fails between two checks."""
    with haproxy_of(tmp_path, nodes, checks="check inter 1h") as running:
        yield running


@pytest.fixture
def nginx(nodes: list[Node], tmp_path: Path) -> Iterator[Nginx]:
    others = {f"#server 192.0.2.1{at}:8080": f"server {nodes[at - 1].address}" for at in (2, 3)}
    with running_nginx(tmp_path, nodes[0].address, edits=others) as running:
        yield running


@needs_haproxy
async def test_haproxy_sends_a_draining_node_no_requests_and_its_streams_go_on(
    nodes: list[Node], haproxy: HAProxy, http: ClientSession
) -> None:
    async with live_stream(http, haproxy.url, nodes) as (node, response):
        node.ready = False
        await until(without(node, http, haproxy.url))
        assert set(await asked(http, haproxy.url, "POST")) == {other.name for other in nodes} - {node.name}
        assert await goes_on(node, response)
    node.ready = True
    await until(lambda: _is_asked(node, http, haproxy.url))


async def _is_asked(node: Node, http: ClientSession, url: str) -> bool:
    return node.name in await asked(http, url)


@needs_haproxy
async def test_haproxy_sends_requests_for_a_dead_node_to_another(
    nodes: list[Node], unaware_haproxy: HAProxy, http: ClientSession
) -> None:
    await nodes[1].stop()
    alive = {nodes[0].name, nodes[2].name}
    assert set(await asked(http, unaware_haproxy.url)) == alive
    assert set(await asked(http, unaware_haproxy.url, "POST")) == alive


@needs_haproxy
@pytest.mark.parametrize(("status", "seen"), [(503, "503"), (0, "502")])
async def test_haproxy_repeats_a_request_that_a_node_has_received_only_if_it_is_a_get(
    nodes: list[Node], unaware_haproxy: HAProxy, http: ClientSession, status: int, seen: str
) -> None:
    nodes[1].status = status
    assert set(await asked(http, unaware_haproxy.url)) == {nodes[0].name, nodes[2].name}
    assert nodes[1].received["GET"] > 0, "no request had to be repeated"
    answers = await asked(http, unaware_haproxy.url, "POST")
    assert answers.count(seen) == nodes[1].received["POST"] > 0
    assert sum(node.received["POST"] for node in nodes) == len(answers)


@needs_haproxy
async def test_a_reload_of_haproxy_cuts_off_no_stream(
    nodes: list[Node], haproxy: HAProxy, http: ClientSession
) -> None:
    async with live_stream(http, haproxy.url, nodes) as (node, response):
        haproxy.start()
        await until(
            lambda: _is_asked(node, http, haproxy.url)
        )  # The old process prefers the nodes without streams.
        assert not haproxy.replaced_has_ended
        assert await goes_on(node, response)
    await until(lambda: haproxy.replaced_has_ended)


@needs_nginx
async def test_nginx_sends_requests_for_a_dead_node_to_another(
    nodes: list[Node], nginx: Nginx, http: ClientSession
) -> None:
    await nodes[1].stop()
    alive = {nodes[0].name, nodes[2].name}
    assert set(await asked(http, nginx.url)) == alive
    assert set(await asked(http, nginx.url, "POST")) == alive


@needs_nginx
async def test_nginx_repeats_a_request_that_a_node_has_received_only_if_it_is_a_get(
    nodes: list[Node], nginx: Nginx, http: ClientSession
) -> None:
    nodes[1].status = 0
    answers = await asked(http, nginx.url, "POST")
    assert answers.count("502") == nodes[1].received["POST"] > 0
    assert sum(node.received["POST"] for node in nodes) == len(answers)
    assert set(await asked(http, nginx.url)) == {nodes[0].name, nodes[2].name}


@needs_nginx
async def test_a_node_that_is_marked_as_down_gets_no_requests_from_nginx_and_its_streams_go_on(
    nodes: list[Node], nginx: Nginx, http: ClientSession
) -> None:
    async with live_stream(http, nginx.url, nodes) as (node, response):
        nginx.reload({f"server {node.address}": f"server {node.address} down"})
        await until(lambda: nginx.workers == 2)
        await until(without(node, http, nginx.url))
        assert await goes_on(node, response)
    await until(lambda: nginx.workers == 1)
