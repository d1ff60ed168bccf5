"""What the model host sends beside what a prediction needs may be missing, `null` or of another type."""

from typing import Any

import pytest
from prometheus_client import REGISTRY

from tests.app.predictions.hosts import VERSION, Studio, advance
from vendors.sandbox.faults import key_of

NEEDLESS = ("created_at", "data_removed", "logs", "metrics", "model", "urls", "version")
LEFT_OUT = "parley_vendor_objects_unreadable_total"


@pytest.mark.parametrize("value", [None, [{}], 7], ids=["null", "list", "number"])
async def test_a_prediction_that_has_ended_is_read_whatever_its_other_fields_are(studio: Studio, value: Any):
    fields = dict.fromkeys(NEEDLESS, value)
    status, answer = await studio.predict(fields=fields)
    assert (status, answer["status"], answer["output"]) == (200, "succeeded", ["Alice"])
    _, later = await studio.later(fields=fields)
    await studio.work_off()
    await advance(studio)
    await studio.work_off()
    state = await studio.state(later["id"])
    assert (state["status"], state["output"]) == ("succeeded", ["Alice"])
    assert len(studio.asked("predictions")) == 2


async def test_an_object_that_cannot_be_read_hides_no_other_of_the_accounts_list(studio: Studio):
    name = {"kind": "HostPrediction"}
    before = REGISTRY.get_sample_value(LEFT_OUT, name) or 0
    for fields in ({"id": None}, {"status": None}, {"id": ["a"]}):
        body = {"version": VERSION, "input": {"prompt": "of another program", "fields": fields}}
        url, headers = f"{studio.sandbox.url}/replicate/v1/predictions", {"Authorization": "Bearer sandbox"}
        async with studio.server.http.post(url, json=body, headers=headers) as response:
            assert response.status == 201
    await studio.set_up(key=key_of(fault="cut_mid_stream", times=1))
    _, answer = await studio.later()
    for _ in range(3):
        await studio.work_off()
        await advance(studio)
    assert (await studio.state(answer["id"]))["status"] == "succeeded"
    assert len(studio.asked("predictions")) == 3 + 1
    assert (REGISTRY.get_sample_value(LEFT_OUT, name) or 0) >= before + 3
