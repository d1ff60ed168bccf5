"""The OpenAPI document, which is generated from the route table, the models and their docstrings.

`groups.py` orders it by who calls (`x-tagGroups`): an area is a section, or several if it names `sections`.

A description begins with the first sentence of its handler in the third person, which therefore has one verb only.
What a response has is the docstring of its model (`descriptions.py`).

Examples are data. `client_calls.json` has the calls of the clients: a compiler checks all, and those most used are
run. `bodies.json` has the bodies of rows without their own, and `responses.json` what a development server has
answered to the examples for curl: `python -m deploy.reference.responses` records it again, at one of `make run`.
S2S forms and deprecated paths show the response of the operation that they repeat.
"""
