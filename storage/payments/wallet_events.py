"""The job that reads back what is expected of the wallet platform."""

from typing import ClassVar

from storage.jobs import Job


class ReconcileWallets(Job):
    """Read back the orders and subscriptions of which something is expected."""

    task: ClassVar[str] = "reconcile_wallets"
