"""Payment platforms, for several areas: our accounts there, the verification of webhooks, and missed events.

A config has one client (`accounts.py`), whose methods are the calls of the platform. Each call passes the gate of
the config, which limits its time and counts its failures.

Anybody can send webhooks, so refusing them must be cheap (`paypal.py`): checks that need no call come first, and
known certificates are kept. The remaining calls pass small gates of their own, so that forged webhooks cannot fill
the bulkhead of payments or open their breaker. A genuine webhook that finds its gate full is answered with 503, and
PayPal sends it again. Fetches of certificates and calls that verify webhooks have a gate each: with one for both, a
host of certificates that was away opened the breaker for the calls too, although those succeeded.

An account of a platform may be shared by several configs, by several apps, and by programs that we do not know. Its
list of events has the events of all of them, so `missed_events.py` asks the area which config has made the object
of an event (`EventList.config_of`), and leaves all others alone. An area applies the events of all configs of its
app, whichever of their webhooks receives them.
"""
