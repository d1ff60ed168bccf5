"""The HTTP endpoints of the local engines."""
