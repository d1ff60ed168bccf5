"""Calls of an app's server."""

from app.accounts.tokens import make_server_token
from tests.servers import SERVER_KEY


def token(**claims: str) -> dict[str, str]:
    made = make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default", **claims)
    return {"X-Service-Auth-Token": made}
