"""Predictions by the models of a host, and files for them."""

from collections.abc import Mapping
from typing import Any, cast

from parley_client.calls import Calls
from parley_client.http import Request, segment
from parley_client.types import BegunPrediction, Prediction, PredictionState

_PREDICTION_S = 310.0
"""The server waits for a prediction for 300 s."""
_UPLOAD_S = 120.0


class Predictions:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def create(
        self,
        strategy: str,
        version: str,
        input: Mapping[str, Any] | None = None,  # noqa: A002
    ) -> Prediction:
        """Make a prediction and wait for its end, for up to five minutes."""
        body = {"strategy": strategy, "version": version, "input": input or {}}
        return cast(Prediction, await self._calls.post("/bp/ai/prediction", body, timeout_s=_PREDICTION_S))

    async def begin(self, strategy: str, data: Mapping[str, Any], *, model: str | None = None) -> BegunPrediction:
        """Begin a prediction, to be read with its `id`.

        `data` goes to the host: `input`, and without a `model` the `version`.
        """
        module = "prediction" if model is None else "model"
        body = {"strategy": strategy, "module": module, "model": model, "data": data}
        return cast(BegunPrediction, await self._calls.once("/bp/ai/async/modelhub", body))

    async def read(self, prediction_id: str) -> PredictionState:
        return cast(PredictionState, await self._calls.get(f"/bp/ai/async/modelhub/{segment(prediction_id)}"))

    async def upload(self, file: bytes) -> str:
        """Upload a file for the input of a prediction, and return its URL."""
        request = Request(
            method="PUT",
            path="/bp/ai/upload",
            body=file,
            content_type="application/octet-stream",
            timeout_s=_UPLOAD_S,
        )
        return str((await self._calls.json(request))["url"])
