"""Payments by card: orders, subscriptions, their periods, refunds and disputes.

Every minute, a job for each config reads back the rows that are due, several at a time, until none is left or 45 s
have passed. A slow platform does not delay the others.

One function applies each kind of object (`apply_intent`, `sync_reversals`, `sync_subscription`), whatever has
caused the read. The content of a webhook is not used. Grants have unique keys, so the order and the number of reads
do not matter.

Concurrent requests for a product share the row of one subscription. The first request that reaches this point
stores its customer and card, before the platform is called with the row's key. Only a refusal of that call closes
the row: a request whose card does not exist leaves the row to the others.

If a call is refused because the customer was deleted at the platform, another customer replaces it (`for_customer`
in `platform.py`). This is safe, because such a call has had no effect.

At the end of a period, Stripe begins the next one and charges an hour later. Until a charge fails, the asset of a
subscription that renews lasts `renewal_tolerance_s` longer than its period (`renewals.py`). It is read a day
before its period ends, then, after the hour, and every minute until it is paid. A grant has both ends, so that a
renewal is one entry of the ledger.

Reads of a subscription are numbered. A read that began before another one, and ends after it, grants periods, but
does not change whether the subscription is cancelled.
"""
