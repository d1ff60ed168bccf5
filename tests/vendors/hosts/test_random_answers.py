"""Answers of model and image hosts with JSON of random shape: what is read can be stored."""

from typing import Any

import pytest
from hypothesis import given, settings
from pydantic import ValidationError

from streams.wire.codec import dumps
from tests.vendors.random_json import VERY_MANY, random_json
from vendors.hosts.midjourney import HostTask
from vendors.hosts.replicate import HostPrediction

NAMES = (
    "status", "process_time", "retry_count", "meta", "task_result", "task_param", "actions", "image_url", "seed",
    "credit", "error_messages", "id", "model", "version", "input", "output", "error", "created_at", "data_removed",
    "account_id",
)  # fmt: skip
VALUES = random_json(NAMES, texts=["finished", "succeeded", "a"])


def check(value: Any) -> None:
    fields = value if isinstance(value, dict) else {"meta": value, "task_result": value, "error": value}
    task = HostTask.model_validate({**fields, "task_result": {**fields, "image_url": "http://a"}})
    assert task.task_result.source_url == "http://a"
    prediction = HostPrediction.model_validate({**fields, "id": "1", "status": "failed", "output": value})
    assert (prediction.id, prediction.status, prediction.output) == ("1", "failed", value)
    dumps([task.model_dump(), task.status, prediction.model_dump(), prediction.error])
    try:
        dumps(HostPrediction.model_validate(value).model_dump())
    except ValidationError:
        assert not isinstance(value, dict) or not {"id", "status"} <= value.keys() or not valid_ids(value)


def valid_ids(value: dict[str, Any]) -> bool:
    return bool(value["id"]) and all(isinstance(value[name], str) for name in ("id", "status"))


@given(VALUES)
def test_random_answers(value: Any) -> None:
    check(value)


@pytest.mark.soak
@pytest.mark.timeout(0)
@settings(max_examples=VERY_MANY)
@given(VALUES)
def test_very_many_random_answers(value: Any) -> None:
    check(value)
