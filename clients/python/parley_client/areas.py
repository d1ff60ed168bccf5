"""The endpoints of an app besides its streams. Each method is one request."""

from collections.abc import Mapping
from typing import Any, cast

from parley_client.calls import Calls
from parley_client.http import Request, segment
from parley_client.types import (
    BegunPrediction,
    Board,
    ImageReply,
    OrderReply,
    Prediction,
    PredictionState,
    SubscriptionReply,
    UploadedScore,
    WalletOrder,
)

_PREDICTION_S = 310.0
"""The server waits for a prediction for 300 s."""
_UPLOAD_S = 120.0
_LONGEST_IMAGE_WAIT_S = 300
_MARGIN_S = 30.0
_WALLET = "/bp/asset/walletpay"


class Wallet:
    """Orders and subscriptions that users pay with a wallet.

    Create one, send the user to its `approve_link_href`, then capture the order or sync the subscription.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def create_order(self, product_id: str, *, country_code: str | None = None) -> WalletOrder:
        body = {"product_id": product_id, "country_code": country_code}
        return cast(WalletOrder, (await self._calls.once(f"{_WALLET}/create", body))["walletpay_order"])

    async def capture_order(self, order_id: str) -> WalletOrder:
        """Take the payment that the user has approved."""
        reply = await self._calls.once(f"{_WALLET}/capture", {"order_id": order_id})
        return cast(WalletOrder, reply["walletpay_order"])

    async def sync_order(self, order_id: str) -> OrderReply:
        """Return an order as the platform has it, and grant what it has paid for."""
        return cast(OrderReply, await self._calls.get(f"{_WALLET}/sync/{segment(order_id)}"))

    async def fetch_order(self, order_id: str) -> OrderReply:
        """Return an order as the platform has it, without granting anything."""
        return cast(OrderReply, await self._calls.get(f"{_WALLET}/{segment(order_id)}/fetch"))

    async def subscribe(
        self,
        product_id: str,
        *,
        country_code: str | None = None,
        return_url: str | None = None,
        cancel_url: str | None = None,
    ) -> SubscriptionReply:
        body = {
            "product_id": product_id,
            "country_code": country_code,
            "return_url": return_url,
            "cancel_url": cancel_url,
        }
        return cast(SubscriptionReply, await self._calls.once(f"{_WALLET}_sub", body))

    async def sync_subscription(self, sub_id: str) -> SubscriptionReply:
        """Return a subscription as the platform has it, and grant what it has paid for."""
        return await self._subscription(sub_id, "sync")

    async def fetch_subscription(self, sub_id: str) -> SubscriptionReply:
        """Return a subscription with its next payment, without granting anything."""
        return await self._subscription(sub_id, "fetch")

    async def upgrade(self, sub_id: str, new_product_id: str) -> SubscriptionReply:
        """Begin an upgrade. Its subscription has another id."""
        path = f"{_WALLET}_sub/{segment(sub_id)}/upgrade"
        return cast(SubscriptionReply, await self._calls.once(path, {"new_bp_product_id": new_product_id}))

    async def sync_upgrade(self, sub_id: str) -> SubscriptionReply:
        """Return the subscription of an upgrade after its approval, and grant what it has paid for."""
        return await self._subscription(sub_id, "sync_upgrade")

    async def _subscription(self, sub_id: str, action: str) -> SubscriptionReply:
        return cast(SubscriptionReply, await self._calls.get(f"{_WALLET}_sub/{segment(sub_id)}/{action}"))


class Leaderboards:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def upload(self, name: str, score: float, *, extra: Mapping[str, Any] | None = None) -> UploadedScore:
        """Store the user's score, in place of the one before."""
        body = {"name": name, "data": {"score": score, **({} if extra is None else {"extra": extra})}}
        reply = await self._calls.post("/bp/leaderboard/data", body, repeatable=True)
        return cast(UploadedScore, reply["leaderboard"][0])

    async def query(self, name: str, *, first: int = 1, last: int = 10, around: int | None = None) -> Board:
        """Return the ranks from `first` to `last`, and `around` users around this one."""
        body = {"name": name, "from": first, "to": last, "around": around}
        return cast(Board, (await self._calls.post("/bp/leaderboard", body, repeatable=True))["leaderboard"])


class Mail:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def send(
        self, name: str, *, email_to: str | None = None, custom_variables: Mapping[str, Any] | None = None
    ) -> None:
        """Send the user an email by the strategy `name`."""
        body = {"name": name, "email_to": email_to, "custom_variables": custom_variables}
        await self._calls.once("/bp/user/me/mail_hub/send", body)


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


class Images:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def imagine(
        self,
        strategy: str,
        data: Mapping[str, Any],
        *,
        type: str = "imagine",  # noqa: A002
        image_url: str | None = None,
        wait_s: int = 0,
    ) -> ImageReply:
        """Begin an image task, and wait for its end for up to `wait_s`, at most 300 s.

        A task that fails is no error: its `status` is `failed`.
        """
        wait_s = min(wait_s, _LONGEST_IMAGE_WAIT_S)
        body = {"strategy": strategy, "type": type, "data": data, "image_url": image_url}
        headers = {"Prefer": f"wait={wait_s}"} if wait_s else {}
        reply = await self._calls.once("/bp/ai/imagine", body, headers=headers, timeout_s=wait_s + _MARGIN_S)
        return cast(ImageReply, reply)

    async def read(self, task_id: str) -> ImageReply:
        return cast(ImageReply, await self._calls.get(f"/bp/ai/imagine/{segment(task_id)}"))
