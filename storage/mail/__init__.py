"""Emails: jobs that send them, recipients, opens and suppressions."""
