"""Lets people sign in at the sandbox's providers, for development servers."""

from collections.abc import Mapping
from typing import Any

from streams.wire.codec import dumps, loads
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model
from vendors.account import Account
from vendors.errors import Refused
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.transport import VendorHttp


class SandboxPerson(Model):
    subject: str
    """The person's id at the provider."""
    profile: dict[str, Any]
    """The person's profile as providers report it."""


class SandboxProvider(Model):
    title: str
    """The provider's name."""
    faults: dict[str, dict[str, Any]]
    """The fields of `_issue` that make a sign-in fail, by the name of the fault."""
    verifies_email: bool
    """Whether the provider reports an email address of the person, and whether that is verified."""


class SandboxChoices(Model):
    people: list[SandboxPerson]
    providers: dict[str, SandboxProvider]


class SandboxSignIn:
    def __init__(self, http: VendorHttp, account: Account, _: None) -> None:
        self._http = http
        self._account = account

    async def choices(self) -> SandboxChoices:
        """Return the people who can sign in, and the providers with their faults. Raises `VendorError`."""
        call = Outgoing(
            self._account.platform, self._account.url("/_sandbox/sign_in"), method="GET", repeat=Repeat.SAFE
        )
        async with self._http.stream(call) as response:
            return await response.value(SandboxChoices)

    async def issue(self, provider: str, choice: Mapping[str, Any]) -> dict[str, Any]:
        """Return the proof that a client would send. Raises `InvalidParameter` if the choice is refused."""
        call = Outgoing(
            self._account.platform,
            self._account.url(f"/{provider}/_issue"),
            headers={"Content-Type": "application/json"},
            body=dumps(choice),
        )
        try:
            async with self._http.stream(call) as response:
                proof: dict[str, Any] = await response.json()
                return proof
        except Refused as refused:
            if refused.vendor_status != 400:
                raise
            raise InvalidParameter(loads(refused.body)["error"]["message"]) from None
