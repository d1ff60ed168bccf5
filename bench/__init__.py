"""Measurements: load, latency, memory, faults, attacks and long runs. `bench/README.md` describes the commands."""
