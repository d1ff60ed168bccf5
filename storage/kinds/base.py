"""What every config kind is: a name, a title for the operator, a model of its value."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from streams.wire.model import Model

HOUR_S = 3600
DAY_S = 24 * HOUR_S
MIB = 1024 * 1024
"""Units of the bounds that fields have. A bound keeps out what timers, counters and memory could not hold."""

ConfigModel = TypeVar("ConfigModel", bound=Model)


@dataclass(frozen=True, slots=True)
class ConfigKind(Generic[ConfigModel]):
    """`singleton`: one config an app, named `default`. Fields of type `SecretStr` are secrets."""

    name: str
    title: str
    model: type[ConfigModel]
    singleton: bool = False
