"""Routes of model predictions (§4.16)."""

from actors.clients.strategies import StrategyNotFound
from app.http.callers.area import Area
from app.http.callers.limits import Limit
from app.http.rows.endpoint import Endpoint
from app.predictions.asynchronous import predict_later, read_prediction
from app.predictions.awaited import predict
from app.predictions.strategies import BODY_BYTES
from app.predictions.upload import MAX_BYTES, upload
from storage.assets.quotas import QuotaUsed
from storage.objects.contract import ObjectsError, ObjectsUnavailable
from storage.tasks.predictions import PredictionNotFound
from streams.wire.errors import BackendUnavailable

PREDICTION_AREA = Area(
    "predictions",
    "Predictions",
    "Predictions by models of a host: any model, with any input.",
    s2s=True,
    scope="ai",
    statuses={BackendUnavailable: 502},
)

_LIMIT = Limit("prediction")
_OBJECTS = (ObjectsError, ObjectsUnavailable)

PREDICTION_ROUTES = [
    Endpoint(
        "POST",
        "/bp/ai/async/modelhub",
        predict_later,
        PREDICTION_AREA,
        limit=_LIMIT,
        body_bytes=BODY_BYTES,
        errors=(StrategyNotFound, QuotaUsed),
    ),
    Endpoint(
        "GET",
        "/bp/ai/async/modelhub/{prediction_id}",
        read_prediction,
        PREDICTION_AREA,
        errors=(PredictionNotFound,),
    ),
    Endpoint(
        "POST",
        "/bp/ai/prediction",
        predict,
        PREDICTION_AREA,
        limit=_LIMIT,
        body_bytes=BODY_BYTES,
        errors=(StrategyNotFound, QuotaUsed, BackendUnavailable, *_OBJECTS),
    ),
    Endpoint("PUT", "/bp/ai/upload", upload, PREDICTION_AREA, limit=_LIMIT, body_bytes=MAX_BYTES, errors=_OBJECTS),
]
