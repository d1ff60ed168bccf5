"""The checks of `python -m app doctor`: each looks at one part of a deployment and says what it has found."""
