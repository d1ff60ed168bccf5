"""Every vendor fault at every stage: `python -m bench.failover`."""
