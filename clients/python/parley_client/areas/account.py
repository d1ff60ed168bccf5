"""The account of a user: codes by email and phone, passwords, bound identities, sessions, deactivation."""

from collections.abc import Mapping
from typing import Any, Literal, cast

from parley_client.calls import Calls
from parley_client.http import segment
from parley_client.types import ListedSession, SocialAccount, SocialProfile

Website = Literal["website", "ios", "android"]
_ME = "/bp/user/me"


class UserAccount:
    """What the user's client and the app's server can do."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def bind(self, platform: str, info: Mapping[str, Any], /, **identifiers: str) -> SocialAccount:
        """Bind an identity at a third party to the user.

        If it belongs to another user, the error's `bp_auth` signs in that user.
        """
        reply = await self._calls.post(f"{_ME}/socialaccount", {**identifiers, platform: info})
        return cast(SocialAccount, reply["social_account"])

    async def unbind(self, platform: str, id: str) -> None:  # noqa: A002
        await self._calls.delete(f"{_ME}/socialaccount/{segment(platform)}/{segment(id)}")

    async def reauthorize(self, id: str, info: Mapping[str, Any]) -> SocialAccount:  # noqa: A002
        """Replace the token of an identity, which `social_network_a` supports."""
        platform = "social_network_a"
        reply = await self._calls.put(f"{_ME}/socialaccount/{platform}/{segment(id)}", {platform: info})
        return cast(SocialAccount, reply["social_account"])

    async def sessions(self) -> list[ListedSession]:
        return cast(list[ListedSession], (await self._calls.get(f"{_ME}/sessions"))["sessions"])

    async def end_session(self, session_id: str) -> None:
        await self._calls.delete(f"{_ME}/sessions/{segment(session_id)}")

    async def deactivate(self) -> None:
        """Freeze the account until it is deactivated. Keep the session: no new one can be obtained."""
        await self._calls.post(f"{_ME}/deactivate", repeatable=True)

    async def recover(self) -> None:
        await self._calls.post(f"{_ME}/deactivate/recover")

    async def confirm_deactivation(self) -> None:
        """Deactivate the account now."""
        await self._calls.post(f"{_ME}/deactivate/confirm")


class Account(UserAccount):
    """What only the user's client can do besides."""

    async def send_email_code(
        self,
        email: str,
        *,
        platform: Website,
        type: Literal["login_email", "sign_up_email"] = "login_email",  # noqa: A002
        custom_variables: Mapping[str, Any] | None = None,
    ) -> None:
        """Send the code for `sign_in("email_code", …)`, or for a sign-up."""
        body = {"email": email, "platform": platform, "type": type, "custom_variables": custom_variables or {}}
        await self._calls.post("/bp/user/send_email_verify_code", body, authenticated=False)

    async def send_phone_code(self, phone_number: str, *, platform: Website | None = None) -> None:
        """Send the code for `sign_in("phone", …)`."""
        body = {"phone_number": phone_number, "platform": platform}
        await self._calls.post("/bp/user/send_phone_verify_code", body, authenticated=False)

    async def email_exists(self, email: str) -> bool:
        reply = await self._calls.post("/bp/user/detect", {"email": email}, authenticated=False, repeatable=True)
        return bool(reply["email_data"]["exists"])

    async def forgot_password(self, email: str, *, platform: Website) -> None:
        """Send an email with the `random_code` of `reset_password`, if there is an account."""
        body = {"email": email, "platform": platform}
        await self._calls.post("/bp/user/email/forgot_password", body, authenticated=False)

    async def reset_password(self, random_code: str, password: str, *, email: str | None = None) -> None:
        body = {"random_code": random_code, "password": password, "email": email}
        await self._calls.post("/bp/user/email/reset_password", body, authenticated=False)

    async def change_password(self, old: str, new: str) -> None:
        """Change the password. All other sessions of the user end."""
        await self._calls.put(f"{_ME}/password", {"origin_password": old, "password": new})

    async def bind_email(self, email: str, *, platform: Website, verify_code: str | None = None) -> None:
        await self._calls.post(f"{_ME}/email", {"email": email, "platform": platform, "verify_code": verify_code})

    async def change_email(self, email: str, *, platform: Website) -> None:
        await self._calls.put(f"{_ME}/email", {"email": email, "platform": platform})

    async def unbind_email(self) -> None:
        await self._calls.delete(f"{_ME}/email")

    async def email_verified(self) -> bool:
        return bool((await self._calls.get(f"{_ME}/email/verify_result"))["verify_result"]["verified"])

    async def send_verify_link(self, *, platform: Website) -> None:
        """Send the link that verifies the address once more."""
        await self._calls.post(f"{_ME}/email/send_verify_code", {"platform": platform})

    async def profiles(self) -> list[SocialProfile]:
        """Return the profiles of the bound identities, which are fetched after a sign-in."""
        return cast(list[SocialProfile], (await self._calls.get(f"{_ME}/social_profiles"))["social_profiles"])
