"""Payments by wallet: orders, subscriptions, upgrades, and the webhooks of the platform.

The endpoints are in the modules `*_endpoints.py`.

A row is stored before the platform is called. Its id begins the idempotency keys of all calls for it (`<row
id>:create`), so the platform recognizes a repeated call. After a timeout or a crash, the call is repeated with the
same key: by the client with its `Idempotency-Key`, or by the job `reconcile_wallet` of its config. A declined
capture gets another key, because the platform would repeat the decline.

One function applies orders (`apply_order` in `order_sync.py`), and one applies subscriptions (`apply_subscription`
in `subscription_states.py`), whether a webhook, a client or the reconciliation has caused the read. It locks the
user, and posts entries whose keys are the ids of payments. So nothing is granted twice, and the order of events
does not matter.

No transaction is open while the platform is called, so data that is older than the row may be applied. This does no
harm: entries are only added, and a completed order stays completed.

Grants follow payments, not states (`periods.py`): a period starts at the time of its payment. The last state that
was read decides when the asset ends (`renewals.py`). PayPal charges hours after a period has ended, or a day if
the month lacks the day, so the asset of an active subscription lasts until `renewal_tolerance_s` after
`next_billing_time`, unless a payment has failed. A suspended subscription outlasts its period by `grace_s`, and a
cancelled one ends with its period. Reads are numbered, as for cards. So the final assets of a user do not depend
on which states were seen.

A plan that was changed at the platform takes effect with the next payment. PayPal does not say which plan a payment
is for: `plans.py` decides it by the times of changes and payments, never by amounts.

What takes a payment back is stored in `payment_reversals` (`app/payments/reversals.py`): refunds, reversals and
disputes, each read back by its id. An event names its object by the links of its resource (`WebhookEvent.named`),
because `PAYMENT.SALE.REVERSED` has a refund and calls it a sale. Only whether the merchant or a bank has made a
refund follows from the name of the event, since the refund does not say it. Disputes are listed once a day for the
whole account, which costs less than a call for each payment.

Payments for a closed account are refunded: an order by a job of its own (`refunds.py`), and a subscription as if it
was replaced at the time of the first such payment.

`check_at` is the time of the next read: in a minute while a change is expected, otherwise at the end of the
period, at the time of the next payment, and at least once a day, for 180 days after the last payment. It is null
once nothing can change. Paid orders and ended subscriptions wait for the rows that are expected to change. Each
config has its own job, so that one app with many open orders, or a slow platform, does not delay the others.

An upgrade is a second subscription (`subscription_sync.py`), because the platform changes plans only at the end of
a period. When the new subscription is paid, one transaction grants it, ends the old asset, and stores refunds for
the unused part of the old payments, in time and in units (`proration.py`). It sets `superseded_at` of the old row:
later payments of that subscription are refunded instead of granted. A job (`replaced.py`) then cancels the old
subscription at the platform and makes the refunds. Refunds that the platform has only accepted are read back every
minute. A refund that exceeds what is left of the payment is made smaller, with a new key. If another upgrade of the
same subscription is approved later, or a second subscription to a product becomes active, it counts as superseded
from its creation, so it is refunded in full.

A request to subscribe locks the user. It returns a subscription that waits for its approval again, and is refused
if the user has a live subscription to the product, by wallet or with a card (`app/payments/subscribing.py`).
"""
