"""Third-party identities: checks their proofs, and converts a platform's report to the stored form."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial
from typing import Literal

from actors.clients.sign_in import SignInClient
from app.accounts.proofs import trace
from app.accounts.proofs.proofs import Prove, Proven
from app.http.callers.addresses import client_network
from app.http.callers.limits import add_rate_headers
from app.http.rows.endpoint import Call
from storage.accounts import single_use
from storage.accounts.identities import Details, Identity
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model
from vendors.errors import VendorError
from vendors.signin.catalog import CLIENT_FIELDS, OPTIONAL_FIELDS
from vendors.signin.protocols import (
    Profile,
    Proof,
    ProofRefused,
    ProviderUnavailable,
    RequiresFields,
    VerifiedIdentity,
)

_PROOF_NAMES = {"identity_token": "id_token"}
"""The fields of `Proof` whose names in requests differ."""
_SECRETS = ("code", "id_token", "access_token", "nonce", "signature")
_MAX_ID_CHARACTERS = 256
_RATE = "login_address"


def third_party(platform: str) -> Prove:
    """Return the check of identities at a third party."""

    async def prove(call: Call, info: Model) -> Proven:
        client = call.services.sign_in.open(call.app_id, platform)
        verified, keeps_profiles = await verify(call, client, platform, info), client.config.fetch_profile
        return Proven(
            Identity(call.app_id, platform, verified.social_id),
            verified=verified if keeps_profiles else replace(verified, profile=None),
            trusted=verified.trusted,
            fetch_profile=keeps_profiles and verified.profile is None,
        )

    return prove


async def verify(call: Call, client: SignInClient, platform: str, info: Model) -> VerifiedIdentity:
    """Return the identity that `info` proves. Raises `ProofRefused` with one text for all reasons.

    Raises `RateLimited` after too many refused proofs from one client IP address. Otherwise, a client could make
    this server send an unlimited number of them to a platform.
    """
    await _count_refused(call, calls=0)
    now = real_time()
    try:
        verified = await check_proof(client, platform, info, now=now, note=partial(trace.step, call))
    except ProofRefused:
        await _count_refused(call, calls=1)
        raise
    await _check_single_use(call, verified, now=now)
    return verified


def real_time() -> datetime:
    """Return the time by which platforms date their proofs, which is not that of an app's clock."""
    return datetime.now(UTC)


async def check_proof(
    client: SignInClient, platform: str, info: Model, *, now: datetime, note: trace.Note
) -> VerifiedIdentity:
    """Return the identity that `info` proves, without storing or counting anything. `now` is the `real_time`.

    `note` gets what was checked, and at last why the proof was refused. Raises `InvalidParameter`, `ProofRefused`
    with one text for all reasons, or `ProviderUnavailable`.
    """
    config, proof = client.config, proof_of(client, platform, info)
    required = f"required: {', '.join([' or '.join(client.sign_in.proof_fields), *_required(client)])}"
    sent = [field.name for field in fields(proof) if getattr(proof, field.name)]
    note(f"fields of the proof for {client.provider}", seen=sent, allowed=required)
    note("ids in the config", allowed=[*config.audiences, *config.issuers, *config.bundle_ids])
    try:
        verified = await client.call(lambda sign_in: sign_in.verify(proof, now=now))
    except ProofRefused as refused:
        for name in _SECRETS:
            refused.redact(getattr(proof, name))
        note(refused.what, seen=refused.seen, allowed=refused.allowed)
        raise ProofRefused from None
    except VendorError as error:
        for name in _SECRETS:
            error.redact(getattr(proof, name))
        note(f"{client.provider} failed", seen=error.what)
        raise ProviderUnavailable.of(error) from error
    if not 0 < len(verified.social_id) <= _MAX_ID_CHARACTERS or not verified.social_id.isprintable():
        raise ProviderUnavailable(f"{platform} sent an id that cannot be stored")
    return verified


def proof_of(client: SignInClient, platform: str, info: Model) -> Proof:
    """Return the proof that a client has sent. Raises `InvalidParameter` if the provider needs another field."""
    names = {_PROOF_NAMES.get(field, field): field for field in type(info).model_fields}
    asked = [names[name] for name in client.sign_in.proof_fields if name in names]
    if not any(getattr(info, field) for field in asked):
        raise InvalidParameter(f"{' or '.join(f'{platform}.{field}' for field in asked)} is required")
    for field in _required(client):
        if not getattr(info, names[field]):
            raise InvalidParameter(f"{platform}.{names[field]} is required")
    return Proof(**{name: value for name, field in names.items() if (value := getattr(info, field))})


@dataclass(frozen=True, slots=True)
class ProofField:
    """A field of a platform in a login that the provider of its config reads."""

    name: str
    is_required: bool
    """Whether a proof without it is refused. If two fields prove the identity, one of them is enough."""


def fields_of(client: SignInClient, platform: str, info: type[Model]) -> list[ProofField]:
    """Return the fields of `info`, the model of a platform in a login, that the provider reads."""
    proofs, required = client.sign_in.proof_fields, {*_required(client)}
    if len(CLIENT_FIELDS[platform].intersection(proofs)) == 1:
        required |= {*proofs}
    if client.config.require_nonce:
        required.add("nonce")
    read = required.union(proofs, OPTIONAL_FIELDS.get(client.provider, ()))
    named = [(_PROOF_NAMES.get(name, name), name, field) for name, field in info.model_fields.items()]
    return [
        ProofField(name, known in required or field.is_required())
        for known, name, field in named
        if known in read or field.is_required()
    ]


def _required(client: SignInClient) -> Sequence[str]:
    return client.sign_in.required_fields if isinstance(client.sign_in, RequiresFields) else ()


async def _count_refused(call: Call, *, calls: Literal[0, 1]) -> None:
    """Count a refused proof, or check with `calls=0` whether another one is allowed."""
    if call.caller.server_key is not None:  # All users of an app's server share its address.
        return
    address = client_network(call.request, call.services.settings.trusted_proxies)
    rate = call.app_limits.rate(_RATE)
    count = await call.services.limiter.count(
        rate, app_id=call.app_id, name=_RATE, who=f"proof:{address}", calls=calls
    )
    add_rate_headers(call.request, [count])
    if calls == 0:
        if count.wait_s > 0:
            trace.rate_exceeded(call, count, of="refused proofs")
        count.check()


async def _check_single_use(call: Call, verified: VerifiedIdentity, *, now: datetime) -> None:
    """Raise `ProofRefused` if a proof that may be used only once was used before.

    Only signatures of Game Center are such proofs. They are stored in PostgreSQL, because Valkey could lose them.
    """
    if not verified.single_use or verified.single_use_until is None:
        return
    app_now = call.services.clock.now(call.app_id)
    until = app_now + (verified.single_use_until - now)
    async with call.services.database.connection() as conn:
        fresh = await single_use.use_once(
            conn, call.app_id, what="proof", value=verified.single_use, now=app_now, until=until
        )
    if not fresh:
        trace.step(call, "the proof was used before")
        raise ProofRefused


def details_from(verified: VerifiedIdentity) -> Details:
    """Return the details of an identity in their stored form."""
    return Details(
        openid=verified.openid,
        xid=verified.xid,
        access_token=verified.access_token,
        refresh_token=verified.refresh_token,
        expiration_date=verified.expiration_date,
        profile=None if verified.profile is None else profile_value(verified.profile),
    )


def profile_value(profile: Profile) -> dict[str, object] | None:
    """Return the stored form of a profile, or None if it is empty. PostgreSQL cannot store U+0000."""
    value = {
        name: text.replace("\0", "")[:2048] if isinstance(text, str) else text
        for name, text in asdict(profile).items()
    }
    return value if any(value.values()) else None
