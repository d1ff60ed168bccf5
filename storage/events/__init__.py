"""Events for the systems of an app: what is to be sent, and what has been."""
