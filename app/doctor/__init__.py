"""The checks of `python -m app doctor`: each examines one part of a deployment and returns its findings."""
