"""Passwords, their rules, and the platform `name_password`."""
