"""Rows of the route table: inputs, replies, errors, transactions and documentation of an endpoint."""
