"""The definition of a config kind: a name, a title for operators, and the model of its value."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from streams.wire.model import Model

HOUR_S = 3600
DAY_S = 24 * HOUR_S
MIB = 1024 * 1024
"""Units for the bounds of fields. The bounds exclude values that timers, counters or memory cannot handle."""

ConfigModel = TypeVar("ConfigModel", bound=Model)


@dataclass(frozen=True, slots=True)
class ConfigKind(Generic[ConfigModel]):
    """A config kind. A `singleton` kind has one config per app, named `default`.

    Fields of type `SecretStr` are secrets, which are stored encrypted.
    """

    name: str
    title: str
    model: type[ConfigModel]
    singleton: bool = False
