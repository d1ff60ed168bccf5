"""Payments by card: orders, subscriptions, their periods, refunds and disputes.

Each config has a job of its own each minute that reads back what is due, several rows at a time, until nothing is
left or 45 s have passed. A slow platform delays no other one.

What is read is applied by one function for each kind of object (`apply_intent`, `sync_reversals`,
`sync_subscription`), whatever has caused the read. The content of a webhook is not used. Grants have unique keys,
so it does not matter in which order, or how often, this happens.

Concurrent requests for a product share the row of one subscription. The first one that gets so far stores its
customer and card, before the platform is called with the row's key. Only a refusal of that call closes the row: a
card that does not exist leaves it to the other requests.

A customer that was deleted at the platform is replaced when a call is refused for it (`for_customer` in
`platform.py`), because such a refusal has had no effect.

Reads of a subscription are numbered. A read that began before another one, and ends after it, grants periods, but
does not change whether the subscription is cancelled.
"""
