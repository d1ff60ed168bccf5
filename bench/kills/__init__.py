"""Kills processes while they work, and checks that no work is lost or done twice: `python -m bench.kills`."""
