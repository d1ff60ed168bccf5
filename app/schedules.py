"""The jobs that run at fixed times."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.jobs.jobs import (
    Job,
    RemoveExpiredAudit,
    RemoveExpiredConversations,
    RemoveExpiredEvents,
    RemoveExpiredExports,
    RemoveExpiredKeys,
    RemoveExpiredMails,
    RemoveExpiredSignIns,
    RemoveExpiredSpeech,
    RemoveExpiredTasks,
    RemoveExpiredWebhooks,
    VerifyLedger,
)
from storage.leaderboards.leaderboards import CheckBoardIndexes
from storage.leaderboards.periods import EndPeriods
from storage.payments.card_reconciliation import ReconcileCards
from storage.payments.missed_events import FindMissedEvents
from storage.payments.wallet_reconciliation import ReconcileWallets
from storage.withdrawals.withdrawals import CheckPayouts


@dataclass(frozen=True, slots=True)
class Schedule:
    """A job that is enqueued at the times of `cron`, in UTC: once per time, however many workers run.

    A sixth field of `cron` are seconds.
    """

    cron: str
    message: Job


SCHEDULES: Sequence[Schedule] = (
    Schedule("17 * * * *", RemoveExpiredSpeech()),
    Schedule("27 * * * *", RemoveExpiredKeys()),
    Schedule("37 * * * *", RemoveExpiredExports()),
    Schedule("47 * * * *", RemoveExpiredConversations()),
    Schedule("57 * * * *", RemoveExpiredWebhooks()),
    Schedule("2 * * * *", RemoveExpiredEvents()),
    Schedule("7 * * * *", RemoveExpiredSignIns()),
    Schedule("12 * * * *", RemoveExpiredMails()),
    Schedule("22 * * * *", RemoveExpiredTasks()),
    Schedule("7 3 * * *", RemoveExpiredAudit()),
    Schedule("7 4 * * *", VerifyLedger()),
    Schedule("* * * * *", ReconcileWallets()),
    Schedule("*/10 * * * *", FindMissedEvents()),
    Schedule("* * * * * */10", CheckPayouts()),
    Schedule("* * * * *", ReconcileCards()),
    Schedule("* * * * * */10", EndPeriods()),
    Schedule("* * * * * */30", CheckBoardIndexes()),
)
