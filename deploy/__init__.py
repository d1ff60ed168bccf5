"""Files for deployments, and `make run`: everything on one machine."""
