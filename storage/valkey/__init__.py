"""Valkey: the client, its pipeline, Lua scripts, subscriptions, and causes of its errors."""
