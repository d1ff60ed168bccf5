"""The way of one request: pipeline, checks, bodies and large responses."""
