"""The page of config kinds: their fields, from the models of `storage/configs/kinds`."""

import sys
from collections import Counter
from collections.abc import Iterator

from deploy.reference.markdown import Schema, input_table, one_line, page_of, table
from storage.configs.kinds import KINDS
from storage.configs.kinds.base import ConfigKind
from streams.wire.model import Model

_ABOUT = """
[Configs](../operating/configure.md) are what operators change while the server runs. A kind that is marked *one per
app* has one config per app, named `default`. A config of any other kind has a name of its own. Secrets are stored
encrypted. Unknown fields are ignored. `GET /admin/api/kinds` returns the JSON Schema of each kind, and `GET
/admin/api/platforms` the `options` of each vendor platform ([strategies](../guides/strategies.md)). The names under
`rates` of `limits`, and their defaults, are in [rate limits](../operating/rate-limits.md).
"""
_SECRETS = "../operating/secrets.md#secrets-in-configs"


def configs_page() -> str:
    schemas = {name: kind.model.model_json_schema() for name, kind in KINDS.items()}
    uses = Counter(name for schema in schemas.values() for name in schema.get("$defs", ()))
    shared = {name for name, count in uses.items() if count > 1}
    return page_of(
        "Config kinds",
        _ABOUT,
        _kinds(),
        *(part for kind in KINDS.values() for part in _section(kind, schemas[kind.name], shared)),
        "## Types of several kinds",
        *(part for name in sorted(shared) for part in _type_section(name, _definition(name, schemas), uses)),
    )


def _kinds() -> str:
    rows = ((f"[`{kind.name}`](#{kind.name})", _meaning(kind)) for kind in KINDS.values())
    return table(("kind", "content"), rows)


def _meaning(kind: ConfigKind[Model]) -> str:
    """Return the docstring of a kind's module without the kind's name."""
    text = one_line(sys.modules[kind.model.__module__].__doc__).removeprefix(f"Kind `{kind.name}`: ")
    return text[:1].upper() + text[1:]


def _section(kind: ConfigKind[Model], schema: Schema, shared: set[str]) -> Iterator[str]:
    own = schema.get("$defs", {})
    yield f"## {kind.name}"
    yield f"{_meaning(kind)}{' One per app.' if kind.singleton else ''}"
    yield one_line(schema.get("description"))
    if kind.names:
        yield f"Its configs have these names: {', '.join(f'`{name}`' for name in kind.names)}."
    yield input_table(schema, own)
    if kind.addresses:
        names = " or ".join(f"`{name}`" for name in kind.addresses)
        yield f"Its secrets must be given again when {names} changes ([why]({_SECRETS}))."
    for name in sorted(own.keys() - shared):
        yield from _type_section(name, own[name], own)


def _type_section(name: str, schema: Schema, sections: dict[str, Schema] | Counter[str]) -> Iterator[str]:
    yield f"### {name}"
    yield one_line(schema.get("description"))
    yield input_table(schema, sections)


def _definition(name: str, schemas: dict[str, Schema]) -> Schema:
    found: Schema = next(schema["$defs"][name] for schema in schemas.values() if name in schema.get("$defs", ()))
    return found
