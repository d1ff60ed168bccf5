"""Kind `postcards`: a design of postcards, and the printer's account."""

from typing import Annotated, Literal

from pydantic import SecretStr

from storage.configs.kinds.base import ConfigKind, Ref
from streams.wire.model import Model


class Postcards(Model):
    account: Annotated[str, Ref("vendor_accounts", offers="postcards")]
    """Name of a config of kind `vendor_accounts`."""
    paper: Literal["matte", "glossy"] = "matte"
    """The paper on which the postcards are printed."""
    webhook_key: SecretStr
    """The key with which the printer signs its webhooks."""


POSTCARDS = ConfigKind("postcards", "Postcards", Postcards)
