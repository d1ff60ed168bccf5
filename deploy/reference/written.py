"""The responses of the API reference that are not recorded."""

from collections.abc import Mapping
from typing import Any

WRITTEN: Mapping[str, Any] = {
    # Usually, the response is empty. It has this body after too many emails to the address.
    "POST /bp/user/me/email": {"next_mail_s": 58},
    "PUT /bp/user/me/email": {"next_mail_s": 58},
    # A job is held when all its attempts have failed, which takes days.
    "POST /admin/api/jobs/held/{job_id}/retry": {},
    "DELETE /admin/api/jobs/held/{job_id}": {},
    # The platform must have lost a withdrawal.
    "POST /admin/api/withdrawals/{app}/{withdrawal_id}/settle": {
        "withdrawal_id": "01a229b2fafc781abb93a564ad1cf2cd",
        "app": "default",
        "user_id": "01a229b2fad8715f8c055ebcf6aab3b3",
        "withdraw_id": "w-1",
        "platform": "paypal",
        "config": "Default",
        "amount": 1000,
        "currency": "USD",
        "state": "paid",
        "reason": "",
        "payout_id": "5KH4TJS9YDVPC",
        "created_at": "2026-01-31T09:00:00Z",
        "submitted_at": "2026-01-31T09:00:01Z",
        "unknown_at": "2026-02-07T09:00:00Z",
        "settled_at": "2026-02-08T10:30:00Z",
    },
    # The link that `make run` prints can be used once.
    "POST /dev/console/session": {"csrf": "5f1d7a1b8d0c4b7e9a63f2d418c0e95a"},
}
"""Responses of the operations that no story can call, and why."""
