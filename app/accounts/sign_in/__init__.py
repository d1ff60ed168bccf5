"""The sign-in platforms, login and signup.

A login has two parts. A platform's `prove` (`platforms.py`) turns what a client sends into a `Proven` identity, and
may call other systems for this. Then `log_in` (`entry.py`) finds or creates the user and begins the session in one
statement (`storage/accounts/logins.py`). If the proof was a code or a token, `Proven.on_login` consumes it in the
same transaction. So an identity without a proof is never stored, and a token that two concurrent requests send is
accepted only once.

In one process, the logins of an identity run one after another (`Services.logins`). So only one of several
concurrent first logins counts as a sign-up, and none holds a database connection while it waits for another.
"""
