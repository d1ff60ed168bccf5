"""Stands in for a package that a deployment with `requirements.core.lock` does not have."""  # noqa: INP001

raise ImportError("requirements.core.lock does not have this package")
