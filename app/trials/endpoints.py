"""Admin API: tries a config before it is published, with a call of its vendor."""

from typing import Any

from pydantic import Field

from app.accounts.proofs.third_party import fields_of
from app.admin.area import FOR_EDITORS
from app.admin.configs.drafts import check_draft
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Body, Path
from app.trials.models import TryBody, TryPath, TryReply
from app.trials.prices import try_product
from app.trials.sign_in import info_in, info_model, try_sign_in
from app.trials.sinks import try_sink
from app.trials.strategies import try_strategy
from storage.configs.kinds.events import EVENTS, Events
from storage.configs.kinds.products import PRODUCTS, Product
from storage.configs.kinds.sign_in import SIGN_IN, SignIn
from storage.configs.rows import ConfigKey
from storage.errors import UnknownApp
from storage.operators import audit
from storage.operators.audit import Subject
from streams.wire.errors import ConfigInvalid, InvalidParameter, ServiceError
from streams.wire.model import Model


class DraftPath(Model):
    app: str
    """An app of this server."""
    name: str = Field(max_length=128)
    """The id of the platform in logins."""


class DraftBody(Model):
    value: dict[str, Any]
    """The config, which need not be stored."""


class ProofFieldRow(Model):
    name: str
    """The name of the field in a login."""
    required: bool
    """Whether a proof without it is refused. If several fields can prove the identity, none of these is required,
    but one of them must be sent."""


class ProofFieldsReply(Model):
    """The provider of the draft, and the fields of its proof."""

    provider: str
    """The service behind the platform id."""
    fields: list[ProofFieldRow]
    """The fields that the service reads. Others of the platform are ignored."""


async def try_config(call: Call, path: Path[TryPath], body: Body[TryBody]) -> TryReply:
    """Try a draft before it is published.

    The vendor is called once with the draft of a strategy, of a vendor account with a language model, or of an
    event sink, at the vendor's usual price. With the draft of a sign-in platform, a proof is verified as in a
    login, which uses up codes that the platform accepts only once. With the draft of a product, the price of a
    subscription is read from each payment platform. Any other product is ordered there for each of its prices
    without being paid: payments with a card are cancelled at once, and orders of the wallet are never approved.

    The audit log has a row for it. Nothing else is stored. The reply reports what the vendor refuses, and its
    failures.
    """
    value = await check_draft(call, ConfigKey(path.app, path.kind, path.name), body.value)
    if path.kind == SIGN_IN.name:
        config, info = SignIn.model_validate(value), info_in(body.proof, path.name)
        await _record(call, path)
        trial, error = await try_sign_in(call, path.name, config, info)
        return TryReply(elapsed_ms=trial.elapsed_ms, sign_in=trial, error=error)
    if path.kind == PRODUCTS.name:
        await _record(call, path)
        prices, left_out = await try_product(call, path.app, Product.model_validate(value))
        elapsed_ms = sum(price.elapsed_ms for price in prices)
        return TryReply(elapsed_ms=elapsed_ms, prices=prices, left_out=left_out)
    if not body.text:
        raise InvalidParameter("text must not be empty")
    await _record(call, path)
    try:
        if path.kind == EVENTS.name:
            sink = Events.model_validate(value)
            return TryReply(elapsed_ms=await try_sink(call, path.app, path.name, sink, body.text))
        return await try_strategy(call, path, body, value)
    except ConfigInvalid:
        raise
    except ServiceError as error:
        return TryReply(error=f"{error.error_type}: {error.what}")


async def _record(call: Call, path: TryPath) -> None:
    async with call.services.database.transaction() as conn:
        await audit.record_change(
            conn, call.origin, action="config.try", subject=Subject(path.app, path.kind, path.name)
        )


async def proof_fields(call: Call, path: Path[DraftPath], body: Body[DraftBody]) -> ProofFieldsReply:
    """List the fields of a proof that a draft reads."""
    value = await check_draft(call, ConfigKey(path.app, SIGN_IN.name, path.name), body.value)
    client = call.services.sign_in.draft(path.name, SignIn.model_validate(value))
    fields = fields_of(client, path.name, info_model(path.name))
    rows = [ProofFieldRow(name=field.name, required=field.is_required) for field in fields]
    return ProofFieldsReply(provider=client.provider, fields=rows)


TRIAL_ROUTES = [
    Endpoint(
        "POST",
        "/admin/api/configs/{app}/{kind}/{name}/try",
        try_config,
        FOR_EDITORS,
        errors=(UnknownApp, ConfigInvalid),
    ),
    Endpoint(
        "POST",
        "/admin/api/sign_in/{app}/{name}/proof_fields",
        proof_fields,
        FOR_EDITORS,
        errors=(UnknownApp, ConfigInvalid),
    ),
]
