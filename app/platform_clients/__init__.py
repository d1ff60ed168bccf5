"""Clients of sign-in and payment platforms, as the configs of an app describe its accounts there.

Clients of sign-in platforms are kept until their config changes (`sign_in.py`), each behind the gate of its config.
`{sandbox}` in a URL of a config stands for the sandbox of a development server, so that its port may change. The
times in proofs of platforms are compared with real time, not with an app's clock.

Anybody can send webhooks, so they cost little (`paypal.py`): what needs no call is checked first, and known
certificates are kept. The calls that remain pass a small gate of their own, so that forged webhooks cannot fill the
bulkhead of payments or open their breaker. A genuine webhook that finds it full is answered with 503, and PayPal
sends it again.
"""
