"""Checks of our app at a provider: is its config sufficient, and was a proof issued to it."""

from typing import Any

from streams.wire.errors import ConfigInvalid
from vendors.signin.protocols import ProofRefused, SignInApp


def invalid(app: SignInApp, problem: str) -> ConfigInvalid:
    """Return the error for a config of kind `sign_in`. `problem` begins with the name of the field."""
    return ConfigInvalid(f"sign_in {app.platform}: {problem}")


def check_audiences(app: SignInApp) -> None:
    """Raise `ConfigInvalid` if the config names no app of ours."""
    if not any(app.audiences):
        raise invalid(app, "audiences must name the ids of your apps at the provider")


def check_code_app(app: SignInApp, *, needs_secret: bool = True) -> None:
    """Raise `ConfigInvalid` if the config is not sufficient to redeem codes that were issued to `client_id`."""
    check_audiences(app)
    if not app.client_id:
        raise invalid(app, "client_id is required")
    if app.client_id not in app.audiences:
        raise invalid(app, "audiences must contain client_id")
    if needs_secret and not app.client_secret.get_secret_value():
        raise invalid(app, "client_secret is required")


def check_issued_to_us(app: SignInApp, issued_to: Any) -> None:
    """Raise `ProofRefused` if a token was issued to another app than those of `audiences`.

    `issued_to` is the id of the app as the provider sends it, text or a whole number.
    """
    known = isinstance(issued_to, str | int) and not isinstance(issued_to, bool)
    if not known or not issued_to or str(issued_to) not in app.audiences:
        raise ProofRefused(f"{app.platform} issued the access token to another app")
