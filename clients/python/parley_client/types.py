"""The JSON objects of responses, as their fields are named on the wire. A newer server may send further fields.

Times are RFC 3339 in UTC, and `0001-01-01T00:00:00Z` means that there is none. `*_ts` are Unix seconds, `*_ms`
milliseconds. Amounts of money are in minor units, such as cents.
"""

from typing import Any, Literal, NotRequired, TypedDict


class SocialProfile(TypedDict):
    """A profile at a third party, as far as it is public there."""

    social_id: str
    platform: str
    user_name: NotRequired[str]
    avatar: NotRequired[str]
    email: NotRequired[str]
    region: NotRequired[str]
    province: NotRequired[str]
    city: NotRequired[str]
    gender: NotRequired[int]
    """0 unknown, 1 male, 2 female."""


class SocialAccount(TypedDict):
    """An identity at a third party that is bound to the user."""

    platform: str
    id: str
    openid: NotRequired[str]
    xid: NotRequired[str]
    access_token: NotRequired[str]
    refresh_token: NotRequired[str]
    expiration_date: NotRequired[int]
    social_profile: NotRequired[SocialProfile]


class Phone(TypedDict):
    phone_number: str


class Email(TypedDict):
    email_address: str
    verified: bool


class SessionToken(TypedDict):
    session_token: str


class User(TypedDict):
    uid: str
    create_time: int
    name: str
    is_new_user: bool
    """Whether this call has made the user."""
    cuid: str
    social_accounts: NotRequired[list[SocialAccount]]
    phone: NotRequired[Phone]
    email: NotRequired[Email]
    session: NotRequired[SessionToken]


class ListedSession(TypedDict):
    session_id: str
    current: bool
    login_platform: str
    os: str
    user_agent: str
    address: str
    created_at: str
    last_seen_at: str
    expires_at: str


class Asset(TypedDict):
    name: str
    type: Literal["consumable", "nonconsumable", "subscription"]
    valid_seconds: int
    quantity: int
    total_quantity: int
    is_auto_renewable: bool
    is_trial_period: bool
    is_consumable: bool
    expire_time: str
    custom_expire_time: str
    platform: str
    product_id: str
    bp_product_id: str
    receipt_id: str
    origin: str
    sub_canceled: bool
    sub_canceled_time: str
    sub_canceled_ts: int
    is_refund: bool
    refund_time: str
    last_recovery_time: NotRequired[str]
    recoverable: NotRequired[bool]


class ShareCode(TypedDict):
    share_code: str
    remain_count: int


class WalletTransaction(TypedDict):
    id: str
    status: str
    amount: int
    currency: str
    ts: int


class WalletSubscription(TypedDict):
    id: str
    plan_id: str
    status: str
    """`APPROVAL_PENDING` until the user has paid at `approve_link_href`, then `ACTIVE`."""
    approve_link_href: str
    canceled_ts: int
    canceled_time: str
    last_payment_ts: int
    next_billing_ts: int
    bp_product_id: str
    walletpay_product_id: str
    latest_transaction: NotRequired[WalletTransaction]
    next_billing_amount: NotRequired[int]
    next_billing_currency: NotRequired[str]


class SubscriptionReply(TypedDict):
    walletpay_sub: WalletSubscription
    assets: list[Asset]


class WalletOrder(TypedDict):
    id: str
    status: str
    """`CREATED` until the user has approved it at `approve_link_href` and it is captured, then `COMPLETED`."""
    amount: int
    currency: str
    approve_link_href: str


class OrderReply(TypedDict):
    walletpay_order: WalletOrder
    assets: list[Asset]


class PaymentIntent(TypedDict):
    id: str
    client_secret: str
    status: str
    payment_method_id: str
    customer_id: str
    amount: int
    currency: str


class SetupIntent(TypedDict):
    id: str
    client_secret: str
    customer_id: str
    payment_method_id: str
    status: str


class CardSubscription(TypedDict):
    id: str
    status: str
    """The platform's: `incomplete` until the first payment, then `trialing`, `active`, `past_due` or `canceled`."""
    product_id: str
    """The platform's id of the price."""
    bp_product_id: str
    customer_id: str
    latest_payment_intent: NotRequired[PaymentIntent]
    """The payment that the app has to confirm."""
    current_period_end_ts: int
    canceled_ts: int
    """0: it was not cancelled."""


class CardSubscriptionReply(TypedDict):
    cardpay_sub: CardSubscription
    assets: list[Asset]


class UploadedScore(TypedDict):
    name: str
    period: str
    order: Literal["DESC", "ASC"]
    post_time: str
    status: NotRequired[str]
    elapsed_seconds: int


class BoardEntry(TypedDict):
    member: str
    score: float
    extra: NotRequired[dict[str, Any]]
    rank: int


class Board(TypedDict):
    around_data: list[BoardEntry]
    rank_data: list[BoardEntry]
    name: str
    self_rank: int
    period: str
    order: Literal["DESC", "ASC"]
    elapsed_seconds: int
    request_time: str


class Prediction(TypedDict):
    id: str
    created: int
    current_count: int
    current_total_count: int
    version: str
    input: dict[str, Any]
    output: list[str]
    status: str
    error: NotRequired[str]


class BegunPrediction(TypedDict):
    asset: list[Asset]
    current_count: int
    current_total_count: int
    id: str


class PredictionState(TypedDict):
    id: str
    status: Literal["starting", "processing", "succeeded", "failed", "canceled"]
    output: list[str]
    error: NotRequired[str]


class ImageTask(TypedDict):
    meta: dict[str, Any]
    process_time: float
    retry_count: float
    status: Literal["pending", "staged", "processing", "retry", "finished", "failed"]
    task_id: str
    task_result: dict[str, Any]
    """`image_url` once the `status` is `finished`, and what has failed."""


class ImageReply(TypedDict):
    current_count: int
    current_total_count: int
    data: ImageTask


class Conversation(TypedDict):
    conversation_id: str
    status: str
    last_record_id: int
    record_count: int
    record_token: int
    sys_created_time: str
    sys_updated_time: str


class ListedConversation(Conversation):
    first_words: str


class ConversationList(TypedDict):
    next: NotRequired[str]
    """The `before` of the next page, if there is one."""
    conversations: list[ListedConversation]


class Record(TypedDict):
    """A turn: the user's message and the answer."""

    record_id: int
    conversation_id: str
    content: list[dict[str, Any]]
    strategy: str
    status: str
    sys_created_time: str
    sys_updated_time: str


class History(TypedDict):
    conversation: Conversation
    conversation_records: list[Record]


class UnitPrice(TypedDict):
    input_per_price: float
    output_per_price: float
    input_token: int
    output_token: int


class Assessment(TypedDict):
    text: str
    """What was recognized."""
    raw_data: dict[str, Any]
    """The scores: `NBest` with `PronunciationAssessment`."""
    unit_price: UnitPrice
    strategy: str


class ConversationOffer(TypedDict):
    name: str
    fault: NotRequired[str]
    """Why the strategy cannot be used as configured."""
    hears: bool
    heard_languages: NotRequired[list[str]]
    """Language codes of audio input (`en` includes every `en-…`). Absent: any."""
    speaks: bool
    spoken_languages: NotRequired[list[str]]


class VoiceOffer(TypedDict):
    name: str
    fault: NotRequired[str]
    languages: NotRequired[list[str]]


class PronunciationOffer(TypedDict):
    name: str
    fault: NotRequired[str]
    languages: NotRequired[list[str]]


class Offers(TypedDict):
    title: str
    """Of the app."""
    conversation: list[ConversationOffer]
    speech: list[VoiceOffer]
    pronunciation: list[PronunciationOffer]


class IpLocation(TypedDict):
    """`-`: there is no information."""

    country_code: str
    country_name: str
    region: str
    city: str
    ip: str
    latitude: str
    longitude: str
    zip_code: str


class Withdrawal(TypedDict):
    cash_num: float
    created_time: str
    updated_time: str
    merchant_id: str
    platform: str
    reason: str
    status: str
    """`WITHDRAW_START`, `WITHDRAW_SUCCESS` or `WITHDRAW_FAILED`."""
    user_id: str
    withdraw_id: str
    withdraw_time: str


class ErasureReceipt(TypedDict):
    app_id: str
    user_id: str
    cause: Literal["confirm", "freeze_end", "operator"]
    deactivated_at: str
    complete: bool
    """False while something remains to be deleted."""
    erased_at: NotRequired[str]
    deleted: dict[str, int]
    """How many of each were deleted."""
    kept: dict[str, Any]
    not_searched: dict[str, str]
    """Places that may still hold data of the user."""
    platforms: list[Any]


class ErasureReceiptReply(TypedDict):
    receipt: ErasureReceipt
    signed: str
    """The receipt as a JWS, whose key `/.well-known/jwks.json` has."""


class TurnDetection(TypedDict):
    """When the server takes the user to have finished speaking."""

    silence_ms: NotRequired[int]
    """Silence after speech, 200 to 5,000; by default 700."""
    max_s: NotRequired[float]
    """The turn ends at this length of the audio; by default, there is no limit."""
