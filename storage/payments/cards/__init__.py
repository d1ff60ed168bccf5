"""Payments with cards: customers, payments, subscriptions and sales.

A row is stored before the card platform is called, with everything that the call contains. Its id is part of the
key of the call and of the platform's object, so a repeated request, a job and the reconciliation find what an
earlier call has created. A job never repeats a call that was not answered: it asks the platform whether the object
exists. A request that is repeated when the platform may have forgotten the key (`KEYS_KEPT`) does the same before
it repeats the call.

Each paid payment or invoice is a sale (`sales.py`), even if it grants nothing, so that its refunds and disputes are
reported. The product is stored with the payment, because its config may change until it is paid.
"""
