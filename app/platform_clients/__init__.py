"""Clients of sign-in and payment platforms, as the configs of an app describe its accounts there."""
