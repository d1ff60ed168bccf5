"""The types of requests and responses are those of the server's models."""

from deploy.reference.typescript import API_TYPES, api_types


def test_the_types_of_the_client_are_what_the_code_generates() -> None:
    assert API_TYPES.read_text() == api_types(), "run `make reference`"
