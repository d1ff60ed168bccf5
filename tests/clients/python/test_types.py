"""The types of this package are those of the OpenAPI document."""

from typing import get_type_hints, is_typeddict

import pytest

from app.http.openapi.document import openapi
from app.routes import INTERFACE
from parley_client import types

SCHEMAS = {
    types.SocialProfile: "PublicSocialProfile",
    types.SocialAccount: "SocialAccount",
    types.Phone: "PhoneView",
    types.Email: "EmailView",
    types.SessionToken: "SessionView",
    types.User: "UserView",
    types.ListedSession: "ListedSessionView",
    types.Asset: "AssetView",
    types.ShareCode: "ShareCode",
    types.WalletTransaction: "TransactionView",
    types.WalletSubscription: "SubscriptionView",
    types.SubscriptionReply: "SubscriptionReply",
    types.WalletOrder: "WalletOrderView",
    types.OrderReply: "OrderWithAssets",
    types.PaymentIntent: "PaymentIntentView",
    types.SetupIntent: "SetupIntentView",
    types.CardSubscription: "CardSubscriptionView",
    types.CardSubscriptionReply: "CardSubscriptionReply",
    types.UploadedScore: "Uploaded",
    types.BoardEntry: "BoardEntry",
    types.Board: "BoardView",
    types.Prediction: "PredictionReply",
    types.BegunPrediction: "AsyncReply",
    types.PredictionState: "PredictionState",
    types.ImageTask: "ImageTaskView",
    types.ImageReply: "ImageReply",
    types.Conversation: "ConversationView",
    types.ListedConversation: "ListedConversation",
    types.ConversationList: "ConversationList",
    types.Record: "RecordView",
    types.History: "HistoryData",
    types.UnitPrice: "UnitPrice",
    types.Assessment: "PronunciationReply",
    types.ConversationOffer: "ConversationOffer",
    types.VoiceOffer: "VoiceOffer",
    types.PronunciationOffer: "PronunciationOffer",
    types.Offers: "Offers",
    types.IpLocation: "IpLocationReply",
    types.Withdrawal: "WithdrawalView",
    types.ErasureReceipt: "ErasureReceipt",
    types.ErasureReceiptReply: "ReceiptReply",
    types.TurnDetection: "TurnDetection",
}
JSON_TYPES = {"string": str, "integer": int, "boolean": bool}


@pytest.fixture(scope="module")
def schemas() -> dict:
    return openapi(INTERFACE, public_url="http://127.0.0.1")["components"]["schemas"]


def test_each_type_is_compared() -> None:
    assert {found for found in vars(types).values() if is_typeddict(found)} == SCHEMAS.keys()


@pytest.mark.parametrize(("kind", "name"), SCHEMAS.items(), ids=SCHEMAS.values())
def test_a_type_has_the_fields_of_its_schema(schemas: dict, kind: type, name: str) -> None:
    schema = schemas[name]
    assert kind.__required_keys__ == set(schema.get("required", []))
    hints = get_type_hints(kind)
    assert hints.keys() == schema["properties"].keys()
    for field, property_schema in schema["properties"].items():
        if "enum" not in property_schema and (plain := JSON_TYPES.get(property_schema.get("type"))):
            assert hints[field] is plain, field
        if "enum" in property_schema:
            assert set(hints[field].__args__) == set(property_schema["enum"]), field
