"""Calls that a limit has refused, counted where the limit is checked."""

from streams.metrics import CounterMetric

REFUSED = CounterMetric("parley_limit_refusals", "Calls that a limit has refused", ["limit"])
