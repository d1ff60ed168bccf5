"""Kind `sms`: the webhook that sends text messages. The one named `default` sends the codes of phone logins."""

from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from storage.configs.kinds.base import DAY_S, ConfigKind
from storage.configs.kinds.urls import SandboxUrl
from storage.configs.kinds.vendor_accounts import CallLimits
from streams.wire.template import render

_CODE = "123456"


def _shows_code(template: str) -> str:
    if _CODE not in render(template, {"Code": _CODE}):
        raise ValueError("must contain {{.Code}}")
    return template


def _not_empty(secret: SecretStr) -> SecretStr:
    if not secret.get_secret_value():
        raise ValueError("must not be empty")
    return secret


class Sms(CallLimits):
    url: SandboxUrl
    """URL to which messages are posted. In development, `{sandbox}` stands for the address of the sandbox."""
    secret: Annotated[SecretStr, AfterValidator(_not_empty)]
    """Signs the calls, in `X-Parley-Signature`."""
    template: Annotated[str, Field(max_length=1000), AfterValidator(_shows_code)] = (
        "{{.Code}} is your verification code."
    )
    """The text of a message with a code. `{{.Code}}` is replaced by the code."""
    code_s: int = Field(default=600, ge=1, le=DAY_S)
    """Seconds for which a code can be used."""


SMS = ConfigKind("sms", "Text messages", Sms, addresses=("url",))
