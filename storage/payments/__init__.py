"""Payments: rows of cards and wallets, their sales and refunds, and mismatches with platforms.

A row is stored before the card platform is called, with everything that the call contains. Its id is part of the
key of the call and of the platform's object, so a repeated request, a job and the reconciliation find what an
earlier call has done. A call that was not answered is never sent again by a job: the platform is asked whether it
knows the object. A request that is repeated when the platform may have forgotten the key (`KEYS_KEPT`) does the
same before it sends the call again.

Each paid payment or invoice is a sale (`card_sales.py`), also if it grants nothing, so that its refunds and
disputes are reported. What was sold is kept with the payment, because its product may change until it is paid.
"""
