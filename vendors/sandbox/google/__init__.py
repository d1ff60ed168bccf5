"""The emulation of Google's language model and speech services."""
