"""Valkey: the client, its pipeline, Lua scripts, subscriptions, and causes of its errors.

All commands of a process share one pipelined connection (`pipeline.py`), so that a stream costs little; redis-py
opens it, and does everything else.
"""
