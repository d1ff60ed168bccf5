"""Payment platforms as several areas use them: our accounts there, verified webhooks, and events that were missed.

A config has one client (`accounts.py`), whose methods are the calls of the platform. Each call passes the gate of
the config, which limits its time and counts its failures.

Anybody can send webhooks, so they cost little (`paypal.py`): what needs no call is checked first, and known
certificates are kept. The calls that remain pass a small gate of their own, so that forged webhooks cannot fill the
bulkhead of payments or open their breaker. A genuine webhook that finds it full is answered with 503, and PayPal
sends it again.
"""
