"""Routes of withdrawals."""

from app.http.callers.area import Area
from app.http.rows.endpoint import Endpoint
from app.withdrawals.errors import (
    AccountInvalid,
    LimitExceeded,
    UserRestricted,
    WithdrawalNotFound,
    WithdrawIdTaken,
)
from app.withdrawals.withdrawals import create, query
from streams.wire.errors import ConfigInvalid

AREA = Area(
    "withdrawals",
    "Withdrawals",
    "Payments to users, which a payout platform makes.",
    scope="withdrawals",
    frozen_allowed=True,
    single_use_token=True,
)
_PATH = "/bp/server/user/{user_id}/withdraw/"

WITHDRAWAL_ROUTES = [
    Endpoint(
        "POST",
        _PATH,
        create,
        AREA,
        errors=(AccountInvalid, LimitExceeded, UserRestricted, WithdrawIdTaken, ConfigInvalid),
    ),
    Endpoint("GET", _PATH, query, AREA, errors=(WithdrawalNotFound,)),
]
