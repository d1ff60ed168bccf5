"""The figures of `bench.durable`: what Valkey has counted, per stream and second."""

from bench.durable import HEADINGS, Cost, _counters, table
from tests.running.servers import Server


async def test_what_streams_have_cost_is_read_from_valkey_and_divided_by_their_seconds(server: Server) -> None:
    valkey = server.services.valkey
    before = await _counters(valkey.client)
    await valkey.run("read_log", keys=[valkey.key("user", "log")], args=[0, 0, 1])
    after = await _counters(valkey.client)
    assert after["scripts"] - before["scripts"] >= 1
    assert after["received"] > before["received"]

    cost = Cost("durable", 10, 1, 20.0, 200, 1_000, 102_400, 2_048, 0.01, 0.02)
    assert table([cost]).splitlines()[0] == f"| {' | '.join(HEADINGS)} |"
    assert cost.cells() == ["durable", "10", "1", "10.00", "50.00", "5.00", "0.10", "500", "1,000"]
