"""Trials of configs that need not be stored: an operator sees what a draft does before it is published.

A draft is checked like a config to be written, and its vendor is called once. The call is the one that the server
makes later, by the same code, so what is accepted here works afterwards. But nothing is stored: no user, no order,
no ledger entry, no used proof and no counted refusal. A failure of the vendor, or its refusal, is a part of the
reply, because it is what the operator wants to know.

This room is above the areas, because it joins the admin API with accounts and payments.
"""
