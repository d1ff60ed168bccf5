"""The jobs that read orders and subscriptions back from the wallet platform."""

from typing import ClassVar

from storage.jobs.jobs import Job


class ReconcileWallets(Job):
    """Store a `ReconcileWallet` for each config of kind `walletpay`."""

    task: ClassVar[str] = "reconcile_wallets"


class ReconcileWallet(Job):
    """Read back the orders and subscriptions of one config that are expected to change."""

    task: ClassVar[str] = "reconcile_wallet"
    app_id: str
    config: str
