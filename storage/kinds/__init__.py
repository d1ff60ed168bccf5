"""All kinds of named configs. To add a kind, add a module here and an entry in `KINDS`."""

from typing import Any

from storage.kinds.apps import APPS
from storage.kinds.auth import AUTH
from storage.kinds.base import ConfigKind
from storage.kinds.cardpay import CARDPAY
from storage.kinds.conversation import CONVERSATION
from storage.kinds.email import EMAIL
from storage.kinds.events import EVENTS
from storage.kinds.images import IMAGES
from storage.kinds.iplocation import IPLOCATION
from storage.kinds.leaderboards import LEADERBOARDS
from storage.kinds.limits import LIMITS
from storage.kinds.mail import MAIL
from storage.kinds.mail_accounts import MAIL_ACCOUNTS
from storage.kinds.payouts import PAYOUTS
from storage.kinds.predictions import PREDICTIONS
from storage.kinds.products import PRODUCTS
from storage.kinds.pronunciation import PRONUNCIATION
from storage.kinds.recognition import RECOGNITION
from storage.kinds.share_groups import SHARE_GROUPS
from storage.kinds.sign_in import SIGN_IN
from storage.kinds.sms import SMS
from storage.kinds.speech import SPEECH
from storage.kinds.vendor_accounts import VENDOR_ACCOUNTS
from storage.kinds.walletpay import WALLETPAY

KINDS: dict[str, ConfigKind[Any]] = {
    kind.name: kind
    for kind in (
        APPS,
        AUTH,
        LIMITS,
        SIGN_IN,
        SMS,
        MAIL_ACCOUNTS,
        EMAIL,
        MAIL,
        WALLETPAY,
        PRODUCTS,
        PAYOUTS,
        SHARE_GROUPS,
        CARDPAY,
        LEADERBOARDS,
        IPLOCATION,
        EVENTS,
        VENDOR_ACCOUNTS,
        IMAGES,
        RECOGNITION,
        SPEECH,
        PRONUNCIATION,
        CONVERSATION,
        PREDICTIONS,
    )
}
