"""Id tokens of an OpenID provider that others have written (oidc-provider-mock)."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from yarl import URL

from streams.wire.codec import loads
from tests.calendar.clock import utc_now
from vendors.http.transport import VendorHttp
from vendors.signin.google import Google
from vendors.signin.protocols import Profile, Proof, ProofRefused, SignInApp

pytestmark = [
    pytest.mark.xdist_group("oidc"),  # One worker imports the provider.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # It calls deprecated methods of authlib.
]

APP, BACK = "our-app", "https://app.test/back"
CLAIMS = {"name": "Mei Lin", "email": "mei@example.test", "email_verified": True}


@dataclass(frozen=True)
class OpenIdProvider:
    """The provider as its discovery document describes it."""

    document: dict[str, Any]
    session: aiohttp.ClientSession

    def client(self, http: VendorHttp, *, audience: str = APP, issuer: str = "") -> Google:
        issuers = (issuer or self.document["issuer"],)
        keys = self.document["jwks_uri"]
        return Google(http, SignInApp("search_vendor_id", audiences=(audience,), issuers=issuers, jwks_url=keys))

    async def id_token(self, *, nonce: str = "") -> str:
        """Sign in and redeem the code, as an app does."""
        asked = {"client_id": APP, "redirect_uri": BACK, "response_type": "code", "scope": "openid profile email"}
        url = URL(self.document["authorization_endpoint"]).with_query(
            {**asked, **({"nonce": nonce} if nonce else {})}
        )
        redirect = await self.session.post(url, data={"sub": "mei"}, allow_redirects=False)
        code = parse_qs(urlsplit(redirect.headers["Location"]).query)["code"][0]
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": BACK}
        headers = {"Authorization": aiohttp.encode_basic_auth(APP, "any")}
        answer = await self.session.post(self.document["token_endpoint"], data=form, headers=headers)
        token = loads(await answer.read())["id_token"]
        assert isinstance(token, str)
        return token


@contextmanager
def running_provider() -> Iterator[int]:
    """Run a provider with one user, and yield its port."""
    from oidc_provider_mock import User, run_server_in_thread  # noqa: PLC0415 - slow to import, for each worker

    users = (User(sub="mei", claims=CLAIMS),)
    with run_server_in_thread(user_claims=users, access_token_max_age=timedelta(minutes=10)) as server:
        yield server.server_port


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with running_provider() as opened:
        yield opened


@pytest.fixture
async def provider(port: int) -> AsyncIterator[OpenIdProvider]:
    async with aiohttp.ClientSession() as session:
        found = await session.get(f"http://localhost:{port}/.well-known/openid-configuration")
        yield OpenIdProvider(loads(await found.read()), session)


async def test_its_tokens_prove_the_identity(http: VendorHttp, provider: OpenIdProvider):
    token = await provider.id_token(nonce="n-7")

    found = await provider.client(http).verify(Proof(id_token=token, nonce="n-7"), now=utc_now())

    assert (found.social_id, found.trusted) == ("mei", True)
    assert found.profile == Profile("Mei Lin", email="mei@example.test")


async def test_its_tokens_are_refused_by_other_apps_and_for_other_issuers_nonces_and_times(
    http: VendorHttp, provider: OpenIdProvider
):
    proof = Proof(id_token=await provider.id_token(nonce="n-8"))
    client = provider.client(http)
    await client.verify(proof, now=utc_now())

    with pytest.raises(ProofRefused, match="another app"):
        await provider.client(http, audience="another-app").verify(proof, now=utc_now())
    with pytest.raises(ProofRefused, match="another issuer"):
        await provider.client(http, issuer="https://accounts.google.com").verify(proof, now=utc_now())
    with pytest.raises(ProofRefused, match="nonce"):
        await client.verify(Proof(id_token=proof.id_token, nonce="n-9"), now=utc_now())
    with pytest.raises(ProofRefused, match="expired"):
        await client.verify(proof, now=utc_now() + timedelta(minutes=12))


async def test_a_token_of_another_provider_of_the_same_form_is_refused(http: VendorHttp, provider: OpenIdProvider):
    with running_provider() as other:
        document = {
            name: value.replace(str(URL(provider.document["issuer"]).port), str(other))
            if isinstance(value, str)
            else value
            for name, value in provider.document.items()
        }
        token = await OpenIdProvider(document, provider.session).id_token()

    with pytest.raises(ProofRefused, match=r"unknown key|signature is wrong"):
        await provider.client(http).verify(Proof(id_token=token), now=utc_now())
