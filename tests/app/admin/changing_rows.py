"""The rows of the admin API that change something, so that each leaves a row in the audit log."""

import re

from app.http.callers.caller import Access
from app.routes import ROUTES

UNCHANGING = {
    ("POST", "/admin/api/configs/{app}/{kind}/{name}/validate"),
    ("POST", "/admin/api/sign_in/{app}/{name}/proof_fields"),
    ("POST", "/admin/api/mails/{app}/{strategy}/preview"),
    ("POST", "/bp/ai/probe"),
    ("DELETE", "/admin/api/session"),
}
"""Rows that change nothing but the caller's own session."""
ELSEWHERE = {
    ("POST", "/admin/api/configs/{app}/{kind}/{name}/try"): "tests/app/trials/test_strategies.py",
    (
        "POST",
        "/admin/api/users/{app}/{user_id}/streams/{stream_id}/cancel",
    ): "tests/app/ai/streams/test_cancel_by_operators.py",
    ("POST", "/admin/api/mails/{app}/{strategy}/test"): "tests/app/admin/test_engagement.py",
    ("POST", "/admin/api/jobs/held/retry"): "tests/app/admin/test_jobs.py",
    ("POST", "/admin/api/jobs/held/drop"): "tests/app/admin/test_jobs.py",
    ("POST", "/admin/api/users/{app}/{user_id}/export/link"): "tests/app/ai/conversations/test_export.py",
    ("POST", "/admin/api/payments/mismatches/{mismatch_id}/resolve"): "tests/app/admin/test_mismatches.py",
    (
        "POST",
        "/admin/api/users/{app}/{user_id}/orders/{order}/refund",
    ): "tests/app/payments/wallet/refunds/test_operator_refunds.py",
}
"""Rows whose entry in the audit log is tested with what they need, such as a running stream."""


def _changing() -> dict[str, list[str]]:
    """Return the paths of all rows that change something, by method."""
    found: dict[str, list[str]] = {}
    for row in ROUTES:
        if row.area.access is Access.ADMIN and row.method != "GET" and (row.method, row.path) not in UNCHANGING:
            found.setdefault(row.method, []).append(row.path)
    return found


CHANGING = _changing()


def matches(pattern: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", pattern), path.partition("?")[0]) is not None
