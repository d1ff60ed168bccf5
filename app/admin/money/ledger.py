"""Admin API of the ledger: the check that assets match its entries."""

import asyncio
from contextlib import aclosing

from app.admin.area import FOR_VIEWERS
from app.http.rows.endpoint import Call, Endpoint
from storage.assets.differences import find_differences
from streams.wire.model import Model

_WITHIN_S = 20.0
_MAX = 200


class DifferenceRow(Model):
    app: str
    user_id: str
    subject: str
    """What differs: an asset, a withdrawal, a share group or the use of a quota."""
    problem: str
    """What is stored, and what should be."""


class LedgerCheck(Model):
    """The differences that were found, and whether everything was checked."""

    complete: bool
    """Whether everything was checked. Otherwise the check took more than 20 s, or has found 200 differences:
    `python -m app verify ledger` has no such limits."""
    differences: list[DifferenceRow]


async def check_ledger(call: Call) -> LedgerCheck:
    """Check that assets match the entries of the ledger.

    Assets, reservations and quotas are rebuilt from their entries. Nothing is changed.
    """
    rows: list[DifferenceRow] = []
    complete = False
    try:
        async with (
            asyncio.timeout(_WITHIN_S),
            aclosing(find_differences(call.services.database)) as differences,
        ):
            async for found in differences:
                rows.append(
                    DifferenceRow(app=found.app_id, user_id=found.uid, subject=found.subject, problem=found.problem)
                )
                if len(rows) == _MAX:
                    break
            else:
                complete = True
    except TimeoutError:
        complete = False
    return LedgerCheck(complete=complete, differences=rows)


LEDGER_ROUTES = [Endpoint("GET", "/admin/api/ledger/check", check_ledger, FOR_VIEWERS)]
