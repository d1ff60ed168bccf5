"""Calls of strategies: attempts, fallback, hedging, time limits, and the gate of each vendor account."""
