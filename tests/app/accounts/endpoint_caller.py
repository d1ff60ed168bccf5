"""A caller of an account endpoint: a client, or an app's server."""

from dataclasses import dataclass, field
from typing import Any

from storage.configs.rows import ConfigKey
from storage.operators.audit import COMMAND
from tests.app.accounts.email.mailbox import Mailbox, new_address, session_of
from tests.app.accounts.interface_errors import Listing
from tests.app.accounts.people import ask, new_user, player, token

Answer = tuple[int, Any]


@dataclass
class Caller:
    """A client with a new user, or an app's server that acts for the user, at one endpoint."""

    box: Mailbox
    listing: Listing
    server: bool
    values: dict[str, str] = field(default_factory=lambda: {"platform": "social_network_a", "id": "1"})
    """The parameters of the path."""
    session: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    """Headers of the call in addition to those that authenticate it."""

    async def be_new_user(self) -> str:
        self.values["user_id"], self.session = await new_user(self.box.server)
        return self.values["user_id"]

    async def be_signed_up(self) -> str:
        """Sign up with an address that is not verified, and return the address."""
        address = new_address()
        result = await self.box.sign_up(address)
        self.session, self.values["user_id"] = session_of(result), result[1]["user"]["uid"]
        return address

    async def call(self, body: Any = None, *, method: str = "", query: str = "") -> Answer:
        """Call the endpoint with its path for clients or for servers."""
        path = self.listing.server_path if self.server else self.listing.path
        headers = {**self._authentication(), **self.headers}
        options = {} if body is None else {"json": body}
        url = path.format(**self.values) + query
        return await ask(self.box.server, method or self.listing.method, url, headers=headers, **options)

    def _authentication(self) -> dict[str, str]:
        if not self.server:
            return self.session
        return {**token(), **(self.session if self.listing.name == "logout" else {})}

    async def configure(self, kind: str, **value: Any) -> None:
        await self.box.server.services.configs.put(
            "default", kind, "default", value, author="tests", origin=COMMAND
        )

    async def without_email(self) -> None:
        key = ConfigKey("default", "email", "default")
        await self.box.server.services.configs.delete(key, author="tests", origin=COMMAND)

    async def execute(self, statement: str, *values: Any) -> None:
        async with self.box.server.services.database.connection() as conn:
            await conn.execute(statement, *values)

    async def linked(self) -> dict[str, Any]:
        """Bind a player to the user, and return its proof."""
        body = player()
        assert (await self.call(body))[0] == 200
        return body
