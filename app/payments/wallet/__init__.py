"""Payments by wallet: orders, subscriptions, upgrades, and what the platform reports of them.

The endpoints are in the modules `*_endpoints.py`.

A row is stored before the platform is called, and its id begins the keys of all calls for it (`<row id>:create`),
by which the platform recognizes a repeat. So a timeout or a crash leaves a row from which the call is repeated with
the same key: by the client with its `Idempotency-Key`, or by the job `reconcile_wallet` of its config. A declined
capture gets another key, because the platform would repeat the decline.

What is read of an object is applied by one function for orders (`apply` in `order_sync.py`) and one for
subscriptions (`apply` in `subscription_states.py`), whether a webhook, a client or the reconciliation has caused
the read. It locks the user, and posts entries whose keys are the ids of payments. So nothing is granted twice, and
the order of events does not matter.

No transaction is open while the platform is called. Something older than the row may therefore be applied, which
changes nothing: entries are only added, and a completed order stays completed.

Assets follow paid periods, not states (`periods.py`): a period runs from the time of its payment. A suspended
subscription outlasts its period by `grace_s`, but only as long as it is read as suspended. So what a user ends up
with does not depend on which states were seen: a cancelled subscription ends with its period.

A plan that was changed at the platform takes effect with its next payment: the first one with another amount, or
that was made after the change was read (`changed_at`). PayPal does not say which plan a payment is for.

`check_at` says when a row is read back: every minute while something is expected of it, otherwise at its renewal
and at least once a day. It is null once nothing can change. Each config has a job of its own, so that one app with
many open orders, or a slow platform, does not delay the others.

An upgrade is a second subscription (`subscription_sync.py`), because the platform changes plans only at the end of
a period. When the new one is paid, one transaction grants it, ends the old asset, and stores as refunds what is
unused of the old payments. The old row is `superseded_at` that instant: its later payments are refunded instead of
granted. A job (`replaced.py`) then cancels it at the platform and makes the refunds. Refunds that the platform has
only accepted are read back every minute. Another upgrade of the same subscription, whose approval comes later, is
superseded since its creation, so all of it is refunded.
"""
