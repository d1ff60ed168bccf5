"""Calls of strategies: attempts, fallback, hedging, time limits, and the gate of each vendor account.

Every vendor call passes a gate (`gate.py`): a circuit breaker and a bulkhead per account. Every attempt is stored
as a row of `attempts` with its usage and cost, as the vendor reports them or as Parley estimates them. The gate
also knows the account's key, and removes it from the vendor's error messages. All areas open accounts with
`services.vendors` (`actors/clients/vendor_clients.py`). `access.client(spec)` is for streams, which `first_success`
takes through the gate. `access.call(…)` makes a call that has one result.
"""
