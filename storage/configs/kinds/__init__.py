"""All kinds of named configs. To add a kind, add a module here and an entry in `KINDS`."""

from typing import Any

from storage.configs.kinds.apps import APPS
from storage.configs.kinds.auth import AUTH
from storage.configs.kinds.base import ConfigKind
from storage.configs.kinds.cardpay import CARDPAY
from storage.configs.kinds.conversation import CONVERSATION
from storage.configs.kinds.email import EMAIL
from storage.configs.kinds.events import EVENTS
from storage.configs.kinds.images import IMAGES
from storage.configs.kinds.iplocation import IPLOCATION
from storage.configs.kinds.leaderboards import LEADERBOARDS
from storage.configs.kinds.limits import LIMITS
from storage.configs.kinds.mail import MAIL
from storage.configs.kinds.mail_accounts import MAIL_ACCOUNTS
from storage.configs.kinds.payouts import PAYOUTS
from storage.configs.kinds.predictions import PREDICTIONS
from storage.configs.kinds.products import PRODUCTS
from storage.configs.kinds.pronunciation import PRONUNCIATION
from storage.configs.kinds.recognition import RECOGNITION
from storage.configs.kinds.share_groups import SHARE_GROUPS
from storage.configs.kinds.sign_in import SIGN_IN
from storage.configs.kinds.sms import SMS
from storage.configs.kinds.speech import SPEECH
from storage.configs.kinds.vendor_accounts import VENDOR_ACCOUNTS
from storage.configs.kinds.walletpay import WALLETPAY

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
