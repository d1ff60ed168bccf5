"""Servers and stores that tests run, in this process or in others."""
