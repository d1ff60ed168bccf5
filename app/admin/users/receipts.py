"""Admin API of receipts: what was deleted when a user was deactivated."""

from app.admin.apps import require_app
from app.admin.area import FOR_EDITORS
from app.admin.users.users import UserPath
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Path
from app.receipts import ReceiptReply, find_receipt
from storage.errors import UnknownApp
from streams.wire.errors import ItemNotFound, listed


class ReceiptNotFound(ItemNotFound):
    """The app has no deactivated user with this id."""

    def __init__(self, user_id: str) -> None:
        super().__init__(f"user {listed([user_id])} is not a deactivated user of the app")


class ReceiptPath(UserPath):
    user_id: str
    """A deactivated user of the app."""


async def read_receipt(call: Call, path: Path[ReceiptPath]) -> ReceiptReply:
    """Read the receipt of a deactivated user.

    It says what was deleted, what is kept, and whether the tokens of sign-in platforms are revoked. It is signed.
    """
    require_app(call, path.app)
    receipt = await find_receipt(call.services, path.app, path.user_id)
    if receipt is None:
        raise ReceiptNotFound(path.user_id)
    return receipt


RECEIPT_ROUTES = [
    Endpoint(
        "GET",
        "/admin/api/users/{app}/{user_id}/erasure_receipt",
        read_receipt,
        FOR_EDITORS,
        errors=(UnknownApp, ReceiptNotFound),
    ),
]
