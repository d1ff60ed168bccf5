"""What every config kind is: a name, a title for the operator, a model of its value."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from streams.wire.model import Model

ConfigModel = TypeVar("ConfigModel", bound=Model)


@dataclass(frozen=True, slots=True)
class ConfigKind(Generic[ConfigModel]):
    """`singleton`: one config an app, named `default`. Fields of type `SecretStr` are secrets."""

    name: str
    title: str
    model: type[ConfigModel]
    singleton: bool = False
