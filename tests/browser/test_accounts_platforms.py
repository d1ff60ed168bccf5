"""Each of the 20 platforms of a login in the browser: the first login, the next one and, where possible, a bind."""

import shutil

import pytest
from playwright.async_api import expect

from storage.configs.kinds.sign_in import PLATFORMS as THIRD_PARTIES
from tests.browser.accounts_page import REFUSED, AccountsPage
from tests.browser.pictures import keep_picture
from tests.sampling import sampled

EMULATED = [platform for platform in THIRD_PARTIES if platform != "android_games_service"]
"""The platforms whose proofs the sandbox issues. The page differs by what they tell about a person: an address, no
name, or a profile that is fetched later. All runs include one of each, and `-m soak` the others."""
NAMELESS = {"ios_vendor_id", "ios_games_service"}
"""The platforms that do not tell the name of a person."""


async def log_in_with_device(accounts: AccountsPage) -> None:
    await accounts.go("device")
    await accounts.button("New id").click()
    await accounts.press("Log in", "a new user")


async def sign_up_with_name(accounts: AccountsPage) -> None:
    """Become a user who can log in without any third-party identity."""
    await accounts.go("name_password")
    await accounts.press("Sign up", "a new user")


async def bind_and_unbind(accounts: AccountsPage, platform: str) -> None:
    """Bind an identity that nobody has to a new user, and unbind it."""
    await accounts.press("Bind", f"Bound {platform}")
    await expect(accounts.ways).to_have_count(1)
    await accounts.ways.get_by_role("button", name="Unbind").click()
    await expect(accounts.result).to_contain_text(f"Unbound {platform}")
    await expect(accounts.ways).to_have_count(0)


@pytest.mark.parametrize("platform", sampled(EMULATED, ["search_vendor_id", "ios_vendor_id", "im_network_b"]))
async def test_a_person_logs_in_again_and_is_bound(accounts: AccountsPage, platform: str) -> None:
    await accounts.open(platform)
    await accounts.press("Log in", "a new user")
    await expect(accounts.ways).to_have_count(1)
    await expect(accounts.user).to_contain_text("User without a name" if platform in NAMELESS else "Mei Lin")
    await accounts.press("Log in", "a known user")
    await expect(accounts.exchanges.first.locator(".badge")).to_have_text("200")
    await keep_picture(accounts.page, f"accounts-{platform}")
    await sign_up_with_name(accounts)
    await accounts.go(platform)
    await accounts.pick("Jonas Weber")
    await bind_and_unbind(accounts, platform)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("platform", sampled(EMULATED, ["ios_games_service", "microblog"]))
async def test_the_curl_command_of_a_login_gets_a_new_proof(accounts: AccountsPage, platform: str) -> None:
    await accounts.open_third_party(platform)
    await accounts.press("Log in", "user")
    uid = await accounts.user.locator("small").inner_text()
    for _ in range(2):
        assert (await accounts.run_command())["user"]["uid"] == uid


async def test_a_player_logs_in_again_and_is_bound(accounts: AccountsPage) -> None:
    await accounts.open("android_games_service")
    await accounts.press("Log in", "a new user")
    await accounts.press("Log in", "a known user")
    await keep_picture(accounts.page, "accounts-android_games_service")
    await sign_up_with_name(accounts)
    await accounts.go("android_games_service")
    await accounts.button("New id").click()
    await bind_and_unbind(accounts, "android_games_service")


@pytest.mark.parametrize("platform", ["device", "anonymity"])
async def test_a_device_is_known_at_its_next_login(accounts: AccountsPage, platform: str) -> None:
    await accounts.open(platform)
    await accounts.press("Log in", "a new user")
    await accounts.press("Log in", "a known user")
    await keep_picture(accounts.page, f"accounts-{platform}")
    await accounts.button("New id").click()
    await accounts.press("Log in", "a new user")


@pytest.mark.parametrize("platform", ["name_password", "email_password"])
async def test_a_user_signs_up_and_logs_in(accounts: AccountsPage, platform: str) -> None:
    await accounts.open(platform)
    await accounts.press("Sign up", "a new user")
    await accounts.press("Log in", "a known user")
    await keep_picture(accounts.page, f"accounts-{platform}")
    accounts.faults.expected.append(REFUSED)
    await accounts.field("Password").fill("another password")
    await accounts.press("Log in", "account.auth_failed")


@pytest.mark.parametrize(
    ("platform", "label", "title"),
    [("email_code", "Email address", "Emails"), ("phone", "Phone number", "Messages")],
)
async def test_a_code_logs_in_a_new_and_then_a_known_user(
    accounts: AccountsPage, platform: str, label: str, title: str
) -> None:
    await accounts.open(platform)
    to = await accounts.field(label).input_value()
    for number, outcome in enumerate(("a new user", "a known user"), start=1):
        await accounts.press("Send a code", "Code sent to")
        inbox = accounts.flow.get_by_role("region", name=f"{title} to {to}")
        await expect(inbox.get_by_role("article")).to_have_count(number)
        await accounts.use_code(to, title=title)
        await accounts.press("Log in", outcome)
    await keep_picture(accounts.page, f"accounts-{platform}")


async def test_a_bp_auth_token_logs_in_once(accounts: AccountsPage) -> None:
    await accounts.open_third_party("microblog")
    await accounts.press("Log in", "user")
    uid = await accounts.user.locator("small").inner_text()
    await log_in_with_device(accounts)
    await accounts.go("bp_auth_token")
    await accounts.press("Log in", f"a known user ({uid})")
    await keep_picture(accounts.page, "accounts-bp_auth_token")
    accounts.faults.expected.append(REFUSED)
    await accounts.press("Log in", "account.auth_failed")


async def test_an_identity_of_another_user_leads_to_that_user(accounts: AccountsPage) -> None:
    await accounts.open_third_party("payment_wallet_a")
    await accounts.press("Log in", "user")
    uid = await accounts.user.locator("small").inner_text()
    await log_in_with_device(accounts)
    await accounts.go("payment_wallet_a")
    accounts.faults.expected.append(REFUSED)
    await accounts.press("Bind", "account.sp_linked_another")
    await keep_picture(accounts.page, "accounts-conflict")
    await accounts.press("Log in with bp_auth", f"a known user ({uid})")
    await expect(accounts.user).to_contain_text(uid)


async def test_a_second_identity_of_a_platform_is_refused(accounts: AccountsPage) -> None:
    await accounts.open_third_party("retail_platform")
    await accounts.press("Log in", "user")
    await accounts.flow.get_by_role("radio", name="Somebody else").check()
    await accounts.field("Name").fill("Kim Park")
    accounts.faults.expected.append(REFUSED)
    await accounts.press("Bind", "account.sp_linked_platform")
    await accounts.press("Log in with bp_auth", "a new user")


async def test_the_last_way_to_log_in_is_not_unbound(accounts: AccountsPage) -> None:
    await accounts.open_third_party("microblog")
    await accounts.press("Log in", "user")
    accounts.faults.expected.append(REFUSED)
    await accounts.press("Unbind", "account.sp_link_may_cause_ghost")


async def test_a_fault_shows_what_clients_get(accounts: AccountsPage) -> None:
    await accounts.open_third_party("microblog")
    accounts.faults.expected += [REFUSED, "status of 502"]
    await accounts.fail_by("other_app")
    await accounts.press("Log in", "account.sp_auth_failed")
    await accounts.fail_by("server_error")
    await accounts.press("Log in", "gateway")
    await expect(accounts.newest).to_contain_text('"error_type": "gateway"')
    await keep_picture(accounts.page, "accounts-fault")
    await accounts.fail_by("")
    await accounts.press("Log in", "user")


async def test_a_chosen_fault_does_not_survive_a_reload(accounts: AccountsPage) -> None:
    await accounts.open_third_party("microblog")
    await accounts.fail_by("timeout")
    await accounts.page.reload()
    await accounts.ready()
    await expect(accounts.flow.get_by_role("combobox", name="What happens")).to_have_value("")
    await expect(accounts.flow.get_by_role("radio", name="Amara Okafor")).to_be_checked()


async def test_addresses_are_shown_where_the_platform_reports_them(accounts: AccountsPage) -> None:
    await accounts.open("search_vendor_id")
    await expect(accounts.flow.get_by_text("not verified")).to_have_count(1)
    await accounts.open("microblog")
    await expect(accounts.flow.locator(".person")).to_have_count(4)
    await expect(accounts.flow.get_by_text("verified")).to_have_count(0)


async def test_the_token_of_an_identity_is_renewed(accounts: AccountsPage) -> None:
    await accounts.open_third_party("social_network_a")
    await accounts.press("Log in", "user")
    await accounts.press("Renew the token", "Token renewed")
