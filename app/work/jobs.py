"""The jobs that workers run: one row each, with its handler and the times at which it is enqueued."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from app.accounts.email.reset import send_reset
from app.accounts.identities.profiles import fetch_profile
from app.accounts.leaving.deactivation import end_freeze
from app.accounts.leaving.erasure import erase_user, revoke_token
from app.accounts.leaving.export import export_user
from app.accounts.phone.sms import send_sms
from app.ai.images.tasks import poll_image_task
from app.assets.verification import verify_ledger
from app.leaderboards.index_check import check_board_indexes
from app.leaderboards.rewards import end_period, end_periods
from app.mail.sending import send_mail
from app.payments.cards.reconciliation import reconcile_card_platform, reconcile_cards
from app.payments.cards.refunds import refund_card
from app.payments.endings import end_second_card, end_subscriptions
from app.payments.wallet.reconciliation import reconcile_wallet, reconcile_wallets
from app.payments.wallet.refunds import refund_order
from app.payments.wallet.replaced import end_replaced
from app.predictions.following import cancel_prediction, follow_prediction
from app.refunds.making import finish_refund
from app.services import Services
from app.webhooks import SOURCES, compare_events, find_missed_events
from app.withdrawals.payouts import check_payouts, pay_out
from app.work.partitions import make_partitions
from app.work.retention import remove_expired, remove_objects
from app.work.webhooks import worker_of
from storage.accounts.password_resets import SendReset
from storage.accounts.profiles import FetchProfile
from storage.accounts.sms import SendSms
from storage.jobs.jobs import (
    ExportUser,
    Job,
    MakePartitions,
    RemoveExpired,
    RemoveObjects,
    RunScheduled,
    VerifyLedger,
    WorkWebhook,
    enqueue,
)
from storage.leaderboards.leaderboards import CheckBoardIndexes
from storage.leaderboards.periods import EndPeriod, EndPeriods
from storage.mail.mail import SendMail
from storage.payments.cards.reconciliation import ReconcileCardPlatform, ReconcileCards
from storage.payments.cards.refunds import RefundCard
from storage.payments.cards.subscriptions import EndSecondCardSubscription
from storage.payments.endings import EndSubscriptions
from storage.payments.missed_events import CompareEvents, FindMissedEvents
from storage.payments.operator_refunds import MakeRefund
from storage.payments.wallet.reconciliation import ReconcileWallet, ReconcileWallets
from storage.payments.wallet.refunds import RefundOrder
from storage.payments.wallet.subscriptions import EndReplacedSubscription
from storage.tasks.image_tasks import PollImageTask
from storage.tasks.predictions import CancelPrediction, FollowPrediction
from storage.userdata.erasures import EraseUser, RevokeToken
from storage.userdata.freezes import EndFreeze
from storage.withdrawals.withdrawals import CheckPayouts, PayOut

J = TypeVar("J", bound=Job)


@dataclass(frozen=True, slots=True)
class JobRow(Generic[J]):
    """A kind of job and its handler."""

    message: type[J]
    handler: Callable[[Services, J], Awaitable[None]]
    schedule: str | None = None
    """The times at which the job is enqueued, in cron's format and UTC. It is enqueued once per time, however many
    workers run.

    A sixth field contains seconds. All fields of the job's message have defaults.
    """


async def run_scheduled(services: Services, _: RunScheduled) -> None:
    """Enqueue the jobs with a schedule, unless they already wait."""
    async with services.database.transaction() as conn:
        for row in JOBS:
            if row.schedule is not None:
                await enqueue(conn, row.message(), key=row.message.task)


JOBS: Sequence[JobRow[Any]] = (
    JobRow(RunScheduled, run_scheduled),
    JobRow(RemoveExpired, remove_expired, schedule="7 * * * *"),
    JobRow(MakePartitions, make_partitions, schedule="23 * * * *"),
    JobRow(RemoveObjects, remove_objects),
    JobRow(ExportUser, export_user),
    JobRow(EndFreeze, end_freeze),
    JobRow(EraseUser, erase_user),
    JobRow(RevokeToken, revoke_token),
    JobRow(WorkWebhook, worker_of(SOURCES)),
    JobRow(FindMissedEvents, find_missed_events, schedule="*/10 * * * *"),
    JobRow(CompareEvents, compare_events),
    JobRow(SendSms, send_sms),
    JobRow(SendMail, send_mail),
    JobRow(SendReset, send_reset),
    JobRow(FetchProfile, fetch_profile),
    JobRow(FollowPrediction, follow_prediction),
    JobRow(CancelPrediction, cancel_prediction),
    JobRow(PollImageTask, poll_image_task),
    JobRow(VerifyLedger, verify_ledger, schedule="7 4 * * *"),
    JobRow(ReconcileWallets, reconcile_wallets, schedule="* * * * *"),
    JobRow(ReconcileWallet, reconcile_wallet),
    JobRow(ReconcileCards, reconcile_cards, schedule="* * * * *"),
    JobRow(ReconcileCardPlatform, reconcile_card_platform),
    JobRow(EndReplacedSubscription, end_replaced),
    JobRow(RefundOrder, refund_order),
    JobRow(RefundCard, refund_card),
    JobRow(MakeRefund, finish_refund),
    JobRow(EndSubscriptions, end_subscriptions),
    JobRow(EndSecondCardSubscription, end_second_card),
    JobRow(PayOut, pay_out),
    JobRow(CheckPayouts, check_payouts, schedule="* * * * * */10"),
    JobRow(EndPeriods, end_periods, schedule="* * * * * */10"),
    JobRow(EndPeriod, end_period),
    JobRow(CheckBoardIndexes, check_board_indexes, schedule="* * * * * */30"),
)
