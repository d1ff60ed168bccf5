"""Predictions by models of a host: requests that wait for the result, and those that a job follows.

A host has no idempotency keys (`following.py`). The time of a call is stored before it. If its response is lost, by
a timeout or the death of the worker, the job searches the host's list for a prediction of the same input that no
other row has. The host is called again only after 10 s in which it has not listed one. Equal inputs are
interchangeable, so nothing else needs to identify a prediction.

A request that waits holds nothing but its connection (`awaited.py`). It asks the host at growing intervals, each
time with a slot of the account for one short call. The row of the prediction and a job that ends it after the
longest wait exist before the host is called, so a process that dies leaves nothing behind: the job gives the quota
back, and another one cancels the prediction at the host. A process that drains waits for these requests as it does
for streams, and then answers them with 503 (`actors/runtime/long_requests.py`).

A webhook of a host is a hint. It makes the job of its prediction due, and the job reads the prediction from the
host.
"""
