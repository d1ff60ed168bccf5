"""The definition of a config kind: a name, a title for operators, and the model of its value."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

from streams.wire.model import Model

HOUR_S = 3600
DAY_S = 24 * HOUR_S
MIB = 1024 * 1024
"""Units for the bounds of fields. The bounds exclude values that timers, counters or memory cannot handle."""

ConfigModel = TypeVar("ConfigModel", bound=Model)


@dataclass(frozen=True, slots=True)
class Ref:
    """Marks a field that names a config of `kind` of the same app, or a list of such names.

    `Annotated[str, Ref("speech")]`. The JSON schema of the field has the kind as `x-config-kind`.
    """

    kind: str
    offers: str | None = None
    """The capability that the platform of the vendor account must offer."""

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(core_schema), "x-config-kind": self.kind}


@dataclass(frozen=True, slots=True)
class ConfigKind(Generic[ConfigModel]):
    """A config kind. A `singleton` kind has one config per app, named `default`.

    Fields of type `SecretStr` are secrets, which are stored encrypted.
    """

    name: str
    title: str
    model: type[ConfigModel]
    singleton: bool = False
    names: tuple[str, ...] = ()
    """The permitted names of its configs. Empty: any."""
    addresses: tuple[str, ...] = ()
    """The fields that decide where the secrets of a config, or what they sign, are sent. When one of them changes,
    stored secrets are not kept. Empty: secrets are never sent."""
