"""Predictions by models of a host. A request waits for the result, or a job follows the prediction.

A host has no idempotency keys (`following.py`). The time of a call is stored before the call. If its response is
lost, by a timeout or the death of the worker, the job searches the host's list for a prediction with the same input
that no other row has. It calls the host again only if the host has not listed one for 10 s. Equal inputs are
interchangeable, so nothing else needs to identify a prediction.

A waiting request holds nothing but its connection (`awaited.py`). It polls the host at growing intervals, and takes
a slot of the account only for each short call. Before the host is called, the row of the prediction and a job that
ends it after the longest wait are stored. So a process that dies leaves nothing behind: the job gives the quota
back, and another one cancels the prediction at the host. A draining process waits for these requests as it does for
streams, and then answers them with 503 (`actors/runtime/long_requests.py`).

A webhook of a host is only a hint. It makes the job of its prediction due, and the job reads the prediction from
the host.
"""
