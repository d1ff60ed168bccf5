"""The HTTP layer that all areas share.

Bytes become requests in `wire`, connections are limited in `serving`, `request` is the pipeline of a request,
`rows` are the rows of the route table, `callers` identifies callers, and `openapi` generates the OpenAPI document
from the rows.
"""
