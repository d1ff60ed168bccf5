"""Admin API: the configs that name a config, which an operator must know before it is deleted."""

from app.admin.area import FOR_VIEWERS
from app.admin.configs.configs import ConfigPath
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Path
from storage.configs.kinds import KINDS
from storage.errors import ConfigKindNotFound
from streams.wire.model import Model


class ReferenceRow(Model):
    app: str
    kind: str
    name: str


class ReferencesReply(Model):
    """The configs that name this one."""

    references: list[ReferenceRow]


async def list_references(call: Call, path: Path[ConfigPath]) -> ReferencesReply:
    """List the configs that name a config in one of their fields.

    They do not work without it. The config itself need not exist.
    """
    if path.kind not in KINDS:
        raise ConfigKindNotFound(path.kind)
    return ReferencesReply(
        references=[
            ReferenceRow(app=key.app_id, kind=key.kind, name=key.name)
            for key in call.services.configs.named_by(path.key)
        ]
    )


REFERENCE_ROUTES = [
    Endpoint(
        "GET",
        "/admin/api/configs/{app}/{kind}/{name}/references",
        list_references,
        FOR_VIEWERS,
        errors=(ConfigKindNotFound,),
    ),
]
