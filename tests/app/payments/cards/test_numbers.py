"""Numbers of cards are found wherever they are stored or logged, so the check after each test of cards can fail."""

import pytest
import structlog

from tests.app.payments.cards.shop import CARD, Buyer, Shop
from tests.app.payments.cards.subscribers import setup
from tests.card_numbers import SENT, shows_number, tables_with

NUMBER = "5555555555554444"
FORMS = [NUMBER, "5555 5555 5555 4444", "5555-5555-5555-4444"]


@pytest.mark.parametrize("form", FORMS)
async def test_a_stored_number_is_found_in_json_and_in_bytes(shop: Shop, buyer: Buyer, form: str) -> None:
    payment = await shop.created(buyer)
    async with shop.server.services.database.connection() as conn:
        assert await tables_with(conn, [NUMBER]) == []
        changes = conn.transaction()
        await changes.start()
        details = "insert into card_payment_details (payment_id, app_id, uid, device_info) values ($1, $2, $3, $4)"
        stored = await conn.fetchval("select payment_id from card_payments where intent_id = $1", payment["id"])
        await conn.execute("delete from card_payment_details where payment_id = $1", stored)
        await conn.execute(details, stored, "default", buyer.uid, {"card": {"number": form}})
        webhook = """
            insert into webhooks (webhook_id, app_id, source, config, headers, body, received_at)
            values ('w', 'default', 'cardpay', 'Default', '{}', $1, now())
        """
        await conn.execute(webhook, f'{{"number":"{form}"}}'.encode())
        found = await tables_with(conn, [NUMBER])
        await changes.rollback()
    assert found == ["public.card_payment_details", "public.webhooks"]


@pytest.mark.parametrize("form", FORMS)
def test_a_logged_number_is_found(capsys: pytest.CaptureFixture[str], form: str) -> None:
    structlog.get_logger().info("card", number=form)
    assert shows_number(capsys.readouterr().out, [NUMBER])
    assert not shows_number(f"1{NUMBER[:-1]}", [NUMBER])


async def test_the_numbers_that_are_sent_are_searched_for(shop: Shop, buyer: Buyer) -> None:
    await setup(shop, buyer)
    assert CARD["number"] in SENT
