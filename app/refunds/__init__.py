"""Refunds by operators, of payments with a card and by wallet.

The row of a refund is stored before the platform is called, with the user locked, so two operators never refund
more than is left. Its id is the key of the call. So a request that is repeated, and the job `MakeRefund`, which
replaces a request that has ended early, get the refund that the first call has made.

The answer of the platform changes no asset. The payment is read back and applied by the function that applies it
after a webhook (`sync_reversals`, `sync_payment`), which counts each refund by its id. So it does not matter
whether the webhook or the answer is first, and a refund whose answer is lost is applied by either.

This room is above the areas, because it joins the admin API with payments.
"""
