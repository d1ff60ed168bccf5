"""The flows of email addresses and of the current user on the accounts page, and the pages of emails."""

import re

from playwright.async_api import Browser, Route, expect

from streams.wire.codec import dumps, loads
from tests.browser.accessibility import check_accessibility
from tests.browser.accounts_page import REFUSED, AccountsPage, accounts_page
from tests.browser.pictures import keep_picture
from tests.running.servers import Server

PASSWORD = "a new password of mine"
DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
_FOCUSED = """() => {
    const { outlineStyle, boxShadow } = getComputedStyle(document.activeElement);
    return outlineStyle !== "none" || boxShadow !== "none" || document.activeElement.type === "radio";
}"""


async def sign_up(accounts: AccountsPage) -> str:
    """Sign up with a new address, and return it."""
    await accounts.open("email_password")
    await accounts.press("Sign up", "a new user")
    return await accounts.field("Email address").input_value()


async def log_in_with_device(accounts: AccountsPage) -> None:
    await accounts.open("device")
    await accounts.press("Log in", "a new user")


async def test_the_link_of_the_first_mail_verifies_the_address(accounts: AccountsPage) -> None:
    email = await sign_up(accounts)
    await expect(accounts.ways).to_have_text(f"{email} (not verified)")
    async with accounts.mail_page("Verify the address") as page:
        await page.get_by_role("button", name="Confirm my address").click()
        await expect(page.get_by_role("heading", name="Your email address is confirmed.")).to_be_visible()
        await page.goto(page.url.replace("/bp/user/email/verify", "/account/verify"))
        await expect(page.get_by_role("heading", name="Your email address is confirmed.")).to_be_visible()
        await keep_picture(page, "account-verify")
    await accounts.go("email")
    await accounts.press("Check verification", "is verified")
    await expect(accounts.ways).to_have_text(email)
    await keep_picture(accounts.page, "accounts-email")


async def test_a_forgotten_password_is_replaced_on_the_page_of_the_mail(accounts: AccountsPage) -> None:
    email = await sign_up(accounts)
    await accounts.press("Forgot password", "a mail is on its way")
    async with accounts.mail_page("Choose a new password") as page:
        await expect(page.get_by_label("Email address")).to_have_value(email)
        accounts.faults.expected.append(REFUSED)
        await page.get_by_label("New password").fill("password1")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_label("New password")).to_have_accessible_description(re.compile("too common"))
        await check_accessibility(page)
        await page.get_by_label("New password").fill(PASSWORD)
        await keep_picture(page, "account-reset")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("heading", name="Your password was changed.")).to_be_visible()
    await accounts.field("Password").fill(PASSWORD)
    await accounts.press("Log in", "a known user")


async def test_a_forgotten_password_is_replaced_with_the_code_of_the_mail(accounts: AccountsPage) -> None:
    email = await sign_up(accounts)
    await accounts.press("Forgot password", "a mail is on its way")
    await accounts.use_code(email)
    await accounts.press("Set the password", "The password was set")
    await accounts.field("Password").fill(await accounts.field("New password").input_value())
    await accounts.press("Log in", "a known user")
    await accounts.press("Check address", f"{email} is in use")


async def test_who_did_not_sign_up_removes_the_address(accounts: AccountsPage) -> None:
    await sign_up(accounts)
    async with accounts.mail_page("This was not me") as page:
        await expect(page.get_by_role("heading", name="Remove this email address?")).to_be_visible()
        await keep_picture(page, "account-not-me")
        await check_accessibility(page)
        remove = page.get_by_role("button", name="Remove my address")
        await remove.click()
        await expect(page.get_by_role("checkbox", name="This was not me")).to_be_focused()
        await page.get_by_role("checkbox", name="This was not me").check()
        await remove.click()
        await expect(page.get_by_role("heading", name="Your address was removed.")).to_be_visible()
    accounts.faults.expected.append(REFUSED)
    await accounts.user.get_by_role("button", name="Refresh user").click()
    await expect(accounts.user).to_contain_text("Not logged in")


async def test_an_address_is_bound_changed_and_unbound(accounts: AccountsPage) -> None:
    await accounts.open("name_password")
    await accounts.press("Sign up", "a new user")
    await accounts.go("email")
    first = await accounts.field("Email address").input_value()
    await accounts.press("Send a code", "Code sent to")
    await accounts.use_code(first)
    await accounts.press("Bind", f"{first} is bound")
    await expect(accounts.ways).to_have_text(first)
    second = f"new-{first}"
    await accounts.field("Email address").fill(second)
    await accounts.press("Change", f"A link was sent to {second}")
    async with accounts.mail_page("Verify the address") as page:
        await page.get_by_role("button", name="Confirm my address").click()
        await expect(page.get_by_role("heading", name="Your email address is confirmed.")).to_be_visible()
    await accounts.press("Check verification", "is verified")
    await expect(accounts.ways).to_have_text(second)
    await accounts.press("Unbind", "The user has no address")
    await expect(accounts.ways).to_have_count(0)


async def test_an_address_of_another_user_leads_to_that_user(accounts: AccountsPage) -> None:
    email = await sign_up(accounts)
    await accounts.go("device")
    await accounts.press("Log in", "a new user")
    await accounts.go("email")
    await accounts.press("Send a code", "Code sent to")
    inbox = accounts.flow.get_by_role("region", name=f"Emails to {email}")
    await expect(inbox.get_by_role("article")).to_have_count(2)
    await accounts.use_code(email)
    accounts.faults.expected.append(REFUSED)
    await accounts.press("Bind", "account.email_already_exists")
    await accounts.press("Log in with bp_auth", "a known user")


async def test_the_user_changes_the_password_and_ends_a_session(accounts: AccountsPage) -> None:
    await accounts.open("name_password")
    await accounts.press("Sign up", "a new user")
    await accounts.go("password")
    await accounts.press("Change", "All other sessions have ended")
    await accounts.field("Current password").fill(await accounts.field("New password").input_value())
    await accounts.go("name_password")
    await accounts.press("Log in", "a known user")
    await accounts.go("sessions")
    await accounts.press("List the sessions", "2 sessions found")
    await accounts.flow.get_by_role("button", name="End").click()
    await expect(accounts.result).to_contain_text("1 session found")
    await accounts.press("List the profiles", "0 profiles found")


async def test_requests_are_shown_with_their_responses_and_can_be_sent_again(accounts: AccountsPage) -> None:
    await accounts.open("name_password")
    await accounts.press("Sign up", "a new user")
    accounts.faults.expected.append(REFUSED)
    await accounts.newest.get_by_role("button", name="Send again").click()
    await expect(accounts.result).to_contain_text("name_password.name is taken")
    await expect(accounts.newest.locator(".badge")).to_have_text("400")
    await expect(accounts.newest.get_by_role("region", name="Response")).to_contain_text('"invalid_parameter"')
    assert (await accounts.run_command())["error"]["error_type"] == "invalid_parameter"


async def test_the_user_stays_logged_in_after_a_reload_until_the_logout(accounts: AccountsPage) -> None:
    await log_in_with_device(accounts)
    uid = await accounts.user.locator("small").inner_text()
    await accounts.page.reload()
    await expect(accounts.user).to_contain_text(uid)
    await accounts.user.get_by_role("button", name="Log out").click()
    await expect(accounts.user).to_contain_text("Not logged in")


async def test_the_picture_of_a_person_is_shown(accounts: AccountsPage) -> None:
    await accounts.open_third_party("photo_network")
    await accounts.press("Log in", "user")
    picture = accounts.user.get_by_role("img", name="Picture of Amara Okafor")
    await expect(picture).to_be_visible()
    assert await picture.evaluate("(image) => image.naturalWidth") > 0


async def test_a_profile_that_is_fetched_after_the_login_is_shown(accounts: AccountsPage) -> None:
    async def slow(route: Route) -> None:
        choice = loads(route.request.post_data or "")
        await route.continue_(post_data=dumps({**choice, "delay_ms": 2000}))

    await accounts.open("microblog")
    await accounts.pick("Somebody else")
    await accounts.field("Name").fill("Kim Park")
    await accounts.page.route("**/_issue", slow)
    try:
        await accounts.press("Log in", "a new user")
        await expect(accounts.user).to_contain_text("User without a name")
        await expect(accounts.user).to_contain_text("Kim Park")
    finally:
        await accounts.page.unroute("**/_issue")
    await expect(accounts.exchanges.locator("summary", has_text="Read the user")).to_have_count(1)
    await expect(accounts.exchanges.first.locator(".json")).to_contain_text("social_profile")


async def test_the_page_of_mails_links_back(accounts: AccountsPage) -> None:
    email = await sign_up(accounts)
    await accounts.page.get_by_role("link", name="Emails").click()
    await accounts.page.get_by_label("Recipient").fill(email)
    await accounts.page.get_by_role("button", name="Show").click()
    await expect(accounts.page.get_by_label("Recipient")).to_have_value(email)
    await expect(accounts.page.locator("main")).to_contain_text("Confirm your email address")
    await check_accessibility(accounts.page)
    await keep_picture(accounts.page, "mails")
    await accounts.page.get_by_role("link", name="Accounts").click()
    await accounts.ready()


async def test_a_login_needs_no_scrolling(chromium: Browser, sandbox_server: Server) -> None:
    for screen in (DESK, PHONE):
        async with accounts_page(chromium, sandbox_server, viewport=screen) as accounts:
            await accounts.open_third_party("search_vendor_id")
            await keep_picture(accounts.page, f"accounts-first-{screen['width']}")
            await accounts.press("Log in", "user")
            await keep_picture(accounts.page, f"accounts-login-{screen['width']}")
            for part in (accounts.user, accounts.button("Log in"), accounts.button("Bind"), accounts.result):
                box = await part.bounding_box()
                assert box["y"] >= 0
                assert box["y"] + box["height"] <= screen["height"]
            assert await accounts.page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
            await check_accessibility(accounts.page)
            accounts.faults.verify()


async def test_narrow_screens_have_a_select_for_the_flows(chromium: Browser, sandbox_server: Server) -> None:
    async with accounts_page(chromium, sandbox_server, viewport={"width": 320, "height": 700}) as accounts:
        await accounts.open("device")
        select = accounts.page.get_by_role("combobox", name="What to try")
        assert await select.locator("option").count() == 23
        for flow in await select.locator("option").evaluate_all("(options) => options.map(({ value }) => value)"):
            await select.select_option(flow)
            await expect(accounts.flow.locator("header code")).to_have_text(flow)
            wider = await accounts.page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
            assert wider <= 0, flow


async def test_no_fault_is_cut_on_narrow_screens(chromium: Browser, sandbox_server: Server) -> None:
    async with accounts_page(chromium, sandbox_server, viewport={"width": 390, "height": 844}) as accounts:
        await accounts.open("photo_network")
        room, widest = await accounts.flow.get_by_role("combobox", name="What happens").evaluate(
            """(select) => {
              const style = getComputedStyle(select), pen = document.createElement("canvas").getContext("2d");
              pen.font = style.font;
              const room = select.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
              return [room, Math.max(...Array.from(select.options, ({ text }) => pen.measureText(text).width))];
            }"""
        )
        assert widest < room


async def test_a_login_works_with_the_keyboard(accounts: AccountsPage) -> None:
    await accounts.open_third_party("microblog")
    keyboard, focused = accounts.page.keyboard, accounts.button("Log in")
    await accounts.page.get_by_role("link", name="Weibo").focus()
    for _ in range(40):
        await keyboard.press("Tab")
        assert await accounts.page.evaluate(_FOCUSED)
        if await focused.evaluate("(button) => button === document.activeElement"):
            break
    await keyboard.press("Enter")
    await expect(accounts.result).to_contain_text(re.compile("a (new|known) user"))
    await expect(focused).to_be_focused()
