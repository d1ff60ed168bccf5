"""Payments by card and by wallet, and what the end of an account does to them.

A job cancels the subscriptions of a deactivated user (`endings.py`). A pending subscription may still be paid
later, so the job is stored again whenever a subscription of such a user is read as renewing.
"""
