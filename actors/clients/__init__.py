"""Clients of vendors, as the configs of an app describe them."""
