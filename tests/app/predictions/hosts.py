"""A user of predictions: calls of the endpoints, and what the sandbox's host was asked for."""

from dataclasses import dataclass
from typing import Any

from streams.wire.ids import new_id
from tests.app.callers import ask, token, work_off
from tests.app.operators import Operator
from tests.running.servers import Server
from tests.waiting import until
from vendors.sandbox.bill import BilledCall
from vendors.sandbox.server import Running

VERSION = "a" * 64
LONG_MS = 600_000


@dataclass
class Studio:
    server: Server
    sandbox: Running
    uid: str
    session: str

    async def set_up(self, *, key: str = "sandbox", account: dict[str, Any] | None = None, **strategy: Any) -> None:
        """Write the account, with a key that may name a fault, and the strategy."""
        operator = Operator(self.server)
        host = {"platform": "replicate", "base_url": f"{self.sandbox.url}/replicate/v1", "api_key": key}
        put = await operator.put("configs/default/vendor_accounts/host", host | (account or {}))
        assert put.status == 200, put.body
        value = {"account": "host", "quota": {"asset": "coins", "free_per_day": 2}, **strategy}
        put = await operator.put("configs/default/predictions/faces?strict=true", value)
        assert put.status == 200, put.body

    async def call(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        headers = {"X-Service-Session-Token": self.session, **options.pop("headers", {})}
        return await ask(self.server, method, path, headers=headers, **options)

    async def predict(self, *, version: str = VERSION, strategy: str = "faces", **given: Any) -> tuple[int, Any]:
        body = {"strategy": strategy, "version": version, "input": {"prompt": "Alice", **given}}
        return await self.call("POST", "/bp/ai/prediction", json=body)

    async def later(self, *, headers: dict[str, str] | None = None, **given: Any) -> tuple[int, Any]:
        data = {"version": VERSION, "input": {"prompt": "Alice", **given}}
        body = {"strategy": "faces", "module": "prediction", "data": data}
        return await self.call("POST", "/bp/ai/async/modelhub", json=body, headers=headers or {})

    async def state(self, prediction_id: str) -> dict[str, Any]:
        status, answer = await self.call("GET", f"/bp/ai/async/modelhub/{prediction_id}")
        assert status == 200, answer
        return answer

    async def ended(self, prediction_id: str) -> dict[str, Any]:
        """Wait until a prediction has ended. A worker must run."""

        async def has_ended() -> bool:
            return (await self.state(prediction_id))["status"] not in {"starting", "processing"}

        await until(has_ended)
        return await self.state(prediction_id)

    async def limit(self, predictions: int) -> None:
        """Set how many predictions a user waits for at once."""
        put = await Operator(self.server).put(
            "configs/default/limits/default", {"predictions_per_user": predictions}
        )
        assert put.status == 200, put.body

    async def grant(self, units: int) -> None:
        """Grant units of the asset of the quota."""
        operator = Operator(self.server)
        product = {"type": "consumable", "asset": "coins", "quantity": units}
        assert (await operator.put("configs/default/products/coins", product)).status == 200
        path = f"users/default/{self.uid}/assets"
        headers = {"X-Parley-Reason": "a test", "Idempotency-Key": new_id()}
        granted = await operator("POST", path, {"product": "coins"}, **headers)
        assert granted.status == 200, granted.body

    async def left(self) -> int:
        """The units that are left, which a prediction that fails does not use."""
        status, answer = await self.predict(fail="to see what is left")
        assert status == 200, answer
        return int(answer["current_count"])

    def asked(self, stage: str) -> list[BilledCall]:
        return [entry for entry in self.sandbox.bill.since(0) if entry.stage == stage]

    async def work_off(self) -> None:
        await work_off(self.server.services)

    def as_server(self) -> dict[str, str]:
        return token(scope="ai")


async def advance(studio: Studio, seconds: float = 60) -> None:
    """Make waiting jobs due, and calls of hosts longer ago."""
    async with studio.server.services.database.connection() as conn:
        await conn.execute(
            "update procrastinate_jobs set scheduled_at = now() where status = 'todo' and task_name = any($1)",
            ["follow_prediction", "cancel_prediction"],
        )
        await conn.execute("update predictions set asked_at = asked_at - make_interval(secs => $1)", seconds)
