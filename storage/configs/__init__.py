"""Configs of apps: their kinds, revisions, edits, rules, references and secrets.

Configs are kept in memory. Every process holds all active configs, parsed and validated, so that starting a stream
reads none from the database. A change is announced through Valkey. A poll of PostgreSQL finds it if Valkey is
unavailable.

A rollback can restore a deleted app, so nothing else is deleted with it. Data still expires by age: by the app's
config `limits` if it exists, otherwise by the defaults of the kind. Its conversations are deleted 30 days after the
app. Its users remain.

Secrets in configs are encrypted with AES-GCM. The ciphertext is bound to its app, kind, name and field, so it
cannot be moved to another field.
"""
