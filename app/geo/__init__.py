"""Locations of IP addresses."""
