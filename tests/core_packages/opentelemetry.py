"""Stands in for a package that a deployment with `deploy/locks/core.lock` does not have."""  # noqa: INP001

raise ImportError("deploy/locks/core.lock does not have this package")
