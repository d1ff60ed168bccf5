"""Without Valkey, the overview says so, and shows what PostgreSQL has."""

from tests.app.operator_calls import call
from tests.app.valkey_proxy import settings, valkey_proxy

__all__ = ["settings", "valkey_proxy"]


async def test_the_overview_names_valkey_and_counts_held_jobs(server, valkey_proxy):
    async with server.services.database.connection() as conn:
        await conn.execute(
            "insert into procrastinate_jobs (queue_name, task_name, status) values ('parley', 'pay_out', 'failed')"
        )
    await valkey_proxy.stop()
    status, found = await call(server, "GET", "/admin/api/overview")
    assert status == 200, found
    (stores,) = [row["names"] for row in found["attention"] if row["what"] == "store"]
    assert "valkey" in stores  # Servers of earlier tests in this process may have lost others.
    assert (found["jobs_held"], found["processes"]) == (1, [])
