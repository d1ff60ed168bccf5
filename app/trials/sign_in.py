"""Verifies a proof once with a sign-in platform that need not be stored. Nobody is logged in."""

import time
from collections.abc import Iterable
from typing import Any, get_args

from pydantic import Field, SecretStr

from actors.clients.sign_in import SignInClient
from app.accounts.proofs.third_party import check_proof, profile_value, real_time
from app.accounts.proofs.trace import Steps
from app.accounts.sign_in.platforms import Platforms
from app.http.rows.endpoint import Call
from storage.configs.kinds.sign_in import SignIn
from streams.wire.errors import ConfigInvalid, InvalidParameter, without_secret
from streams.wire.model import Model
from vendors.errors import VendorError
from vendors.signin.protocols import Profile, ProofRefused, ProviderUnavailable, VerifiedIdentity

_SECRETS = ("client_secret", "private_key")
_HIDDEN = ("code", "identity_token", "id_token", "access_token", "nonce", "signature")
"""The fields of a proof with which somebody could log in."""
_SHOWN = {"name": "user_name", "picture": "avatar", "email": "email"}
"""The fields of a profile that are shown, under their names in the reply."""


class TrialStep(Model):
    step: str
    """What was checked."""
    seen: Any = None
    allowed: Any = None


class SignInTrial(Model):
    provider: str
    """The service behind the platform id."""
    elapsed_ms: int
    """The duration of the verification, without that of fetching the profile."""
    social_id: str = ""
    """The id that the user would have at the platform. Empty if the proof is refused."""
    trusted: bool = False
    """False if only the client claims the id, without a proof."""
    name: str = ""
    picture: str = ""
    """The URL of a picture."""
    email: str = ""
    """Empty unless the platform has verified it."""
    steps: list[TrialStep] = Field(default_factory=list)
    """What was checked, in order. The last one says why a proof is refused."""


def info_model(platform: str) -> type[Model]:
    """Return the model of a third-party platform in a login."""
    options = get_args(Platforms.model_fields[platform].annotation)
    return next(option for option in options if isinstance(option, type) and issubclass(option, Model))


def info_in(proof: Platforms | None, platform: str) -> Model:
    """Return the proof for a platform. Raises `InvalidParameter` if it is missing, or if there is another one."""
    info = None if proof is None else getattr(proof, platform)
    if not isinstance(info, Model):
        raise InvalidParameter(f"proof.{platform} is required")
    for name in Platforms.model_fields:
        if name != platform and getattr(proof, name) is not None:
            raise InvalidParameter(f"proof.{name} is not the platform of this config, which is {platform}")
    return info


async def try_sign_in(call: Call, platform: str, config: SignIn, info: Model) -> tuple[SignInTrial, str | None]:
    """Verify a proof once. Return what was found, and why it is refused or why the platform has failed.

    Raises `InvalidParameter` for a proof without a field that the provider needs.
    """
    client = call.services.sign_in.draft(platform, config)
    steps, began = Steps(), time.monotonic()
    verified, profile, error = None, None, None
    try:
        verified = await check_proof(client, platform, info, now=real_time(), note=steps.add)
    except InvalidParameter as missing:
        raise InvalidParameter(f"proof.{missing.what}") from None
    except ProofRefused as refused:
        error = f"{refused.error_type}: {steps.rows[-1]['step']}"
    except (ProviderUnavailable, ConfigInvalid) as failed:  # The platform may not know our app, or its secret.
        error = f"{failed.error_type}: {failed.what}"
    elapsed_ms = round((time.monotonic() - began) * 1000)
    if verified is not None:
        profile = await _profile(client, verified, steps)
    hidden = [*_texts(info), *_texts(config)]
    trial = SignInTrial(
        provider=client.provider,
        elapsed_ms=elapsed_ms,
        steps=[TrialStep(**_without(hidden, row)) for row in steps.rows],
        **_found(verified, profile or Profile()),
    )
    return trial, error and _without(hidden, error)


async def _profile(client: SignInClient, verified: VerifiedIdentity, steps: Steps) -> Profile | None:
    """Return the profile in the proof, or fetch it as the job after a login does. A failure becomes a step."""
    if verified.profile is not None or not client.config.fetch_profile:
        return verified.profile
    try:
        return await client.call(lambda sign_in: sign_in.profile(verified))
    except (ProofRefused, VendorError) as error:
        for token in (verified.access_token, verified.refresh_token):
            error.redact(token)
        steps.add("the profile could not be fetched", seen=error.what)
        return None


def _found(verified: VerifiedIdentity | None, profile: Profile) -> dict[str, Any]:
    """Return what operators may see of an identity. Its tokens are not among it."""
    if verified is None:
        return {}
    shown = profile_value(profile) or {}
    person = {name: shown.get(field, "") for name, field in _SHOWN.items()}
    return {"social_id": verified.social_id, "trusted": verified.trusted, **person}


def _texts(source: Model) -> Iterable[str]:
    """Yield the secrets in a proof, or in a config."""
    for name in (*_HIDDEN, *_SECRETS):
        match getattr(source, name, None):
            case SecretStr() as secret:
                yield secret.get_secret_value()
            case str(text):
                yield text


def _without(hidden: Iterable[str], value: Any) -> Any:
    """Return a value of JSON in which no text has one of these secrets."""
    match value:
        case str(text):
            for secret in hidden:
                text = without_secret(secret, text)
            return text
        case list():
            return [_without(hidden, item) for item in value]
        case dict():
            return {name: _without(hidden, item) for name, item in value.items()}
    return value
