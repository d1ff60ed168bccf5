"""Sign-ins for developers: the sandbox issues proofs of identities in place of the platforms."""

from typing import Any

from pydantic import Field

from app.dev.area import DEVELOPMENT, require_app
from app.dev.sandbox import ask_sandbox
from app.http.rows.docs import Docs
from app.http.rows.endpoint import DEFAULT_APP, Call, Endpoint
from app.http.rows.inputs import Body, Path, Query
from app.services import Services
from storage.configs.kinds.sign_in import PLATFORMS
from storage.configs.kinds.urls import SANDBOX
from streams.wire.errors import (
    AppNotFound,
    BackendUnavailable,
    ConfigInvalid,
    ItemNotFound,
    listed,
)
from streams.wire.model import Model
from vendors.catalog import Capability
from vendors.signin.sandbox import SandboxChoices, SandboxPerson, SandboxSignIn

_SIGN_IN = Capability[None, SandboxSignIn]("sandbox_sign_in").by(SandboxSignIn)
_WITHOUT_PROVIDER = "play_games"
"""The provider whose identities need no proof."""
_WITH_OPEN_ID = "im_network_a"
"""The platform whose clients send an `open_id` together with the token (§2.2)."""


class PlatformNotEmulated(ItemNotFound):
    """The sandbox issues no proofs of this `platform`."""


class AppQuery(Model):
    app: str = DEFAULT_APP
    """The app whose configs of kind `sign_in` name the providers."""


class PlatformPath(Model):
    platform: str
    """A third-party platform (§2.2)."""


class SignInChoice(Model, extra="allow"):
    subject: str = Field(min_length=1, max_length=200)
    """The id of the person at the platform."""


class IssuedProof(Model, extra="allow"):
    """The body of a login: the platform, with the proof that a client sends."""


class EmulatedPlatform(Model):
    title: str = ""
    """The name of the provider."""
    provider: str = ""
    faults: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """The fields of `_issue` that make a sign-in fail, by the name of the fault."""
    verifies_email: bool = False
    """Whether the provider reports an email address of the person, and whether that is verified."""
    problem: str = ""
    """Why nobody can sign in. Empty if somebody can."""


class EmulatedPlatforms(Model):
    """The platforms and the people that the sandbox emulates."""

    people: list[SandboxPerson]
    """The people who can sign in, at any provider."""
    platforms: dict[str, EmulatedPlatform]


async def list_platforms(call: Call, query: Query[AppQuery]) -> EmulatedPlatforms:
    """List the emulated platforms, the people and the faults.

    Only development servers have this endpoint.
    """
    services, app_id = call.services, require_app(call.services, query.app)
    choices = await ask_sandbox(services, _SIGN_IN, lambda sandbox: sandbox.choices())
    platforms = {platform: _emulated(services, app_id, platform, choices) for platform in PLATFORMS}
    return EmulatedPlatforms(
        people=choices.people,
        platforms={name: emulated for name, emulated in platforms.items() if emulated is not None},
    )


def _emulated(services: Services, app_id: str, platform: str, choices: SandboxChoices) -> EmulatedPlatform | None:
    """Return how the sandbox emulates a platform, or `None` if its identities need no proof."""
    try:
        provider, _ = _provider(services, app_id, platform)
    except PlatformNotEmulated:
        return None
    except ConfigInvalid as error:
        return EmulatedPlatform(problem=error.what)
    found = choices.providers.get(provider)
    if found is None:
        return EmulatedPlatform(problem=f"the sandbox does not emulate {provider}")
    return EmulatedPlatform(provider=provider, **found.model_dump())


async def issue(
    call: Call, path: Path[PlatformPath], query: Query[AppQuery], body: Body[SignInChoice]
) -> IssuedProof:
    """Let a person sign in at a platform that the sandbox emulates.

    The response is the body of a login or a bind. Further fields of the request, such as `profile` and `fault`, are
    described in `vendors/sandbox/README.md`. Only development servers have this endpoint.
    """
    services, app_id, platform = call.services, require_app(call.services, query.app), path.platform
    provider, app = _provider(services, app_id, platform)
    choice = {"app": app, **body.model_dump()}
    proof = await ask_sandbox(services, _SIGN_IN, lambda sandbox: sandbox.issue(provider, choice))
    if platform != _WITH_OPEN_ID:
        proof.pop("open_id", None)
    return IssuedProof(**{platform: proof})


def _provider(services: Services, app_id: str, platform: str) -> tuple[str, str]:
    """Return the provider of a platform, and the config of our app there.

    Raises `ConfigInvalid` if the sandbox does not emulate it, and `PlatformNotEmulated` if it has no provider.
    """
    if platform not in PLATFORMS:
        raise PlatformNotEmulated(f"third-party platform {listed([platform])} does not exist")
    client = services.sign_in.open(app_id, platform)
    if client.provider == _WITHOUT_PROVIDER:
        raise PlatformNotEmulated(f"identities of {platform} need no proof")
    config = client.config
    if not (config.base_url or "").startswith(SANDBOX):
        raise ConfigInvalid(f"sign_in {platform}: base_url does not name the sandbox")
    ids = (config.client_id, *config.audiences, *config.bundle_ids)
    return client.provider, next(filter(None, ids), "")


_CHOICE = Docs(
    bodies={
        "Mei signs in": {"subject": "100000000000000001", "profile": {"name": "Mei Lin"}},
        "The platform does not answer": {"subject": "100000000000000001", "fault": "hang_before_headers"},
        "A proof for another app": {"subject": "100000000000000001", "app": "app-of-others"},
    }
)
_ERRORS = (AppNotFound, BackendUnavailable)

DEV_ACCOUNT_ROUTES = [
    Endpoint("GET", "/dev/accounts/platforms", list_platforms, DEVELOPMENT, errors=_ERRORS),
    Endpoint(
        "POST",
        "/dev/accounts/{platform}/_issue",
        issue,
        DEVELOPMENT,
        errors=(*_ERRORS, PlatformNotEmulated, ConfigInvalid),
        docs=_CHOICE,
    ),
]
