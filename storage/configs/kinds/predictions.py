"""Kind `predictions`: strategies of model predictions (§4.16)."""

from typing import Annotated

from pydantic import Field

from storage.configs.kinds.base import ConfigKind, Ref
from storage.configs.kinds.quota import Quota
from streams.wire.model import Model

_Name = Annotated[str, Field(min_length=1, max_length=255)]


class Predictions(Model):
    account: Annotated[str, Field(max_length=64), Ref("vendor_accounts", offers="predictions")]
    """Name of a config of kind `vendor_accounts`."""
    models: list[_Name] = Field(default_factory=list, max_length=1000)
    """The models that may be called, as `owner/name`. If this and `versions` are empty, all may be called.

    A version that a request names by its id must be in `versions`, because hosts may consider only the id.
    """
    versions: list[_Name] = Field(default_factory=list, max_length=1000)
    """The versions that may be called, in any of the host's forms."""
    quota: Quota | None = None
    """The assets of the user that each prediction uses."""

    def allows_model(self, model: str) -> bool:
        return model in self.models or not (self.models or self.versions)

    def allows_version(self, version: str) -> bool:
        """Return whether a version may be called: `<id>`, `owner/name` or `owner/name:<id>`."""
        _, _, version_id = version.rpartition(":")
        named = {version, version_id} & set(self.versions)
        return bool(named) or version in self.models or not (self.models or self.versions)


PREDICTIONS = ConfigKind("predictions", "Predictions", Predictions)
