"""Emails about accounts, the pages to which they lead, and what a reader may do there."""
