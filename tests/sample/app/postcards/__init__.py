"""Postcards: ordered by the server of an app, printed by a vendor, and listed by their user."""
