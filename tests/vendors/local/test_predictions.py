"""The model host of the local engines, called by the client of real ones."""

import pytest

from streams.wire.errors import InvalidParameter
from tests.calendar.clock import utc_now
from tests.vendors.local.conftest import Local
from tests.waiting import until
from vendors.account import Account
from vendors.errors import Refused
from vendors.hosts.replicate import NewPrediction, ReplicateHost
from vendors.http.client import open_vendor_http


async def test_prediction_is_made_read_listed_and_canceled(local: Local):
    async with open_vendor_http() as http:
        host = ReplicateHost(http, Account("local", "local_models", local.url), None)
        new = NewPrediction({"version": "scripted:0", "input": {"prompt": "hello"}})
        with pytest.raises(InvalidParameter):
            await host.create(new, webhook=None)
        new = NewPrediction({"version": "scripted", "input": {"prompt": "hello", "max_tokens": 2}})
        created = await host.create(new, webhook="https://example.com")
        assert created.status == "starting"

        async def ended() -> bool:
            return (await host.get(created.id)).has_ended

        await until(ended)
        found = await host.get(created.id)
        assert (found.status, new.is_that_of(found)) == ("succeeded", True)
        assert isinstance(found.output, str)
        long = NewPrediction({"input": {"prompt": "repeat 900 words"}}, "parley/scripted")
        running = await host.create(long, webhook=None)
        assert (await host.cancel(running.id)).status == "canceled"
        assert (await host.get(running.id)).status == "canceled"
        listed = await host.created_since(utc_now())
        assert [prediction.id for prediction in listed][:2] == [running.id, created.id]
        with pytest.raises(Refused):
            await host.get("missing")
        for body, model in (
            ({"version": "other", "input": {"prompt": "x"}}, None),
            ({"version": "scripted", "input": {}}, None),
            ({"input": {"prompt": "x"}}, "someone/scripted"),
        ):
            with pytest.raises((InvalidParameter, Refused)):
                await host.create(NewPrediction(body, model), webhook=None)
