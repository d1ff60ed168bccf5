"""What the endpoints of money answer while a store is away."""

import asyncio

from tests.app.money.error_causes import ROWS
from tests.app.money.good_requests import GOOD
from tests.app.money.till import Till
from tests.waiting import until


async def test_each_endpoint_answers_503_while_the_database_is_away(till: Till) -> None:
    requests = {place: await GOOD[place](till) for place in ROWS}
    await till.database.stop()
    answers = await asyncio.gather(*map(till.ask, requests.values()))
    await till.database.start()
    found = {
        place: (status, answer["error"]["error_type"])
        for place, (status, answer) in zip(requests, answers, strict=True)
    }
    assert {place: error for place, error in found.items() if error != (503, "database")} == {}

    async def all_succeed() -> bool:
        again = await asyncio.gather(*map(till.ask, requests.values()))
        return {status for status, _ in again} == {200}

    await until(all_succeed)


async def test_only_endpoints_that_check_tokens_need_valkey(till: Till) -> None:
    requests = {place: await GOOD[place](till) for place, row in ROWS.items() if not row.area.single_use_token}
    await till.valkey.stop()
    answers = await asyncio.gather(*map(till.ask, requests.values()))
    await till.valkey.start()
    assert {place: answer for place, answer in zip(requests, answers, strict=True) if answer[0] != 200} == {}
