"""Stripe's test cards, and the result of a payment with each."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class TestCard:
    """`declined` is the reason of a decline: a decline code, or one of `CODES`."""

    number: str
    name: str | None
    """The payment method that stands for it."""
    brand: str = "visa"
    declined: str | None = None
    declines_setup: bool = True
    """Whether it is declined when it is attached too."""
    action: Literal["never", "unless_set_up", "always"] = "never"
    """When its owner must authenticate a payment."""
    disputed: bool = False


CODES = frozenset({"expired_card", "incorrect_cvc", "processing_error", "authentication_required"})
"""Reasons of declines that are error codes. The others are decline codes of `card_declined`."""
INCORRECT_NUMBER = "4242424242424241"

_CARDS = (
    TestCard("4242424242424242", "pm_card_visa"),
    TestCard("5555555555554444", "pm_card_mastercard", "mastercard"),
    TestCard("378282246310005", "pm_card_amex", "amex"),
    TestCard("4000000000000002", "pm_card_visa_chargeDeclined", declined="generic_decline"),
    TestCard("4000000000009995", "pm_card_visa_chargeDeclinedInsufficientFunds", declined="insufficient_funds"),
    TestCard("4000000000009987", "pm_card_visa_chargeDeclinedLostCard", declined="lost_card"),
    TestCard("4000000000009979", "pm_card_visa_chargeDeclinedStolenCard", declined="stolen_card"),
    TestCard("4000000000000069", "pm_card_chargeDeclinedExpiredCard", declined="expired_card"),
    TestCard("4000000000000127", "pm_card_chargeDeclinedIncorrectCvc", declined="incorrect_cvc"),
    TestCard("4000000000000119", "pm_card_chargeDeclinedProcessingError", declined="processing_error"),
    TestCard(
        "4000000000006975", "pm_card_visa_chargeDeclinedVelocityLimitExceeded", declined="card_velocity_exceeded"
    ),
    TestCard("4000000000000341", "pm_card_chargeCustomerFail", declined="generic_decline", declines_setup=False),
    TestCard("4000002500003155", "pm_card_authenticationRequiredOnSetup", action="unless_set_up"),
    TestCard("4000002760003184", "pm_card_authenticationRequired", action="always"),
    TestCard("4000008260003178", None, declined="insufficient_funds", declines_setup=False, action="unless_set_up"),
    TestCard("4000000000003220", "pm_card_threeDSecure2Required", action="always"),
    TestCard("4000000000003063", None, action="always"),
    TestCard("4000000000000259", "pm_card_createDispute", disputed=True),
)
BY_NUMBER = {card.number: card for card in _CARDS}
BY_NAME = {card.name: card for card in _CARDS if card.name is not None}
