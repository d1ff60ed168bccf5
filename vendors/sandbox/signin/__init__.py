"""The emulation of sign-in providers, one module each."""
