"""Payment platforms, for several areas: our accounts there, the verification of webhooks, and missed events.

A config has one client (`accounts.py`), whose methods are the calls of the platform. Each call passes the gate of
the config, which limits its time and counts its failures.

Anybody can send webhooks, so refusing them must be cheap (`paypal.py`): checks that need no call come first, and
known certificates are kept. The remaining calls pass a small gate of their own, so that forged webhooks cannot fill
the bulkhead of payments or open their breaker. A genuine webhook that finds this gate full is answered with 503,
and PayPal sends it again.
"""
