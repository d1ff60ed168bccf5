"""The OpenAPI document, which is generated from the route table, the models and their docstrings."""
