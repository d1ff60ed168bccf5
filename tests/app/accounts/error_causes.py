"""What causes each error that the interface lists for an account endpoint."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from tests.app.accounts.email.mailbox import NEW_PASSWORD, PASSWORD, link_in, new_address
from tests.app.accounts.endpoint_caller import Answer, Caller
from tests.app.accounts.interface_errors import IMPOSSIBLE, LISTED
from tests.app.accounts.people import ask
from tests.app.accounts.platforms import proof
from tests.running.servers import SERVER_KEY

AUTH = {"server_keys": [{"kid": "development", "alg": "HS256", "secret": SERVER_KEY}], "require_sign": False}
EMAIL = {"mail_accounts": ["inbox"], "code_login": True, "activation": True}
FULL = """
create function full_disk() returns trigger language plpgsql as $$ begin
    raise exception 'No space left on device' using errcode = '53100';
end $$;
create trigger full_disk before insert on procrastinate_jobs execute function full_disk()
"""
WITHDRAWAL = """
insert into withdrawals (withdrawal_id, app_id, uid, app_withdraw_id, request, config, platform, merchant_id,
    amount, currency, status, reason, payout_id, created_at, updated_at)
values ($1, 'default', $1, $1, '{}', 'default', 'paypal', 'm', 100, 'EUR', 'START', '', '', now(), now())
"""
Cause = Callable[[Caller], Awaitable[Answer]]
CAUSES: dict[tuple[str, str], Cause] = {}
ADDRESS = "ada.lovelace@example.com"
BODIES: dict[str, Any] = {
    "login": {"email_code": {"email": ADDRESS, "verify_code": "123456"}},
    "signup": {"email_password": {"email": ADDRESS, "password": PASSWORD}},
    "detect": {"email": ADDRESS},
    "bind": {"android_games_service": {"player_id": "g1"}},
    "reauthorize": {"social_network_a": {"access_token": "x", "id": "1", "expiration_date": 0}},
    "send code": {"email": ADDRESS, "platform": "ios", "type": "login_email"},
    "send own code": {"platform": "ios"},
    "forgot password": {"email": ADDRESS, "platform": "website"},
    "reset password": {"random_code": "x" * 43, "password": NEW_PASSWORD},
    "change password": {"origin_password": PASSWORD, "password": NEW_PASSWORD},
    "bind email": {"email": ADDRESS, "platform": "android"},
    "change email": {"email": ADDRESS, "platform": "android"},
}
"""A valid body of each endpoint that has one."""


def causes(error: str, *names: str) -> Callable[[Cause], Cause]:
    """Declare what causes an error at the endpoints `names`, or at all others that list it."""

    def declare(cause: Cause) -> Cause:
        for row in LISTED:
            listed = error in row.errors and (row.name, error) not in IMPOSSIBLE
            if listed and (not names or row.name in names):
                CAUSES.setdefault((row.name, error), cause)
        return cause

    return declare


@causes("400 invalid_api_version")
async def of_another_version(caller: Caller) -> Answer:
    caller.headers = {"X-Service-Api-Version": "2"}
    return await caller.call(BODIES.get(caller.listing.name))


@causes("400 app_not_found")
async def of_an_unknown_app(caller: Caller) -> Answer:
    caller.headers = {"X-Service-App-Id": "none"}
    return await caller.call(BODIES.get(caller.listing.name))


@causes("405 method_not_allowed")
async def with_a_wrong_method(caller: Caller) -> Answer:
    return await caller.call(method="PATCH")


@causes("400 account.invalid_session")
async def with_an_ended_session(caller: Caller) -> Answer:
    """The S2S paths of accounts accept a session in place of a token."""
    caller.headers = {"X-Service-Session-Token": "st_ended"}
    path = caller.listing.server_path if caller.server else caller.listing.path
    body = BODIES.get(caller.listing.name)
    return await ask(
        caller.box.server,
        caller.listing.method,
        path.format(**caller.values),
        headers=caller.headers,
        **({} if body is None else {"json": body}),
    )


@causes("400 invalid_parameter", "get user", "unbind email", "deactivate")
async def with_an_encoded_body(caller: Caller) -> Answer:
    """These endpoints have no parameters."""
    caller.headers = {"Content-Encoding": "gzip"}
    return await caller.call()


@causes("400 invalid_parameter", "verify")
async def with_a_link_for_no_address(caller: Caller) -> Answer:
    return await caller.call(query=f"{await _verify_query(caller)}&email=ada")


@causes("400 invalid_parameter", "confirm", "recover")
async def of_an_active_user(caller: Caller) -> Answer:
    return await caller.call()


@causes("400 invalid_parameter")
async def with_a_list_as_body(caller: Caller) -> Answer:
    return await caller.call([])


@causes("417 config_invalid", "change password")
async def without_the_keys_of_signatures(caller: Caller) -> Answer:
    await caller.configure("auth", require_sign=True)
    return await caller.call(BODIES[caller.listing.name])


@causes("417 config_invalid", "verify")
async def by_a_link_of_an_app_without_emails(caller: Caller) -> Answer:
    query = await _verify_query(caller)
    await caller.without_email()
    return await caller.call(query=query)


@causes("500 config_invalid")
@causes("417 config_invalid")
async def of_an_app_without_emails(caller: Caller) -> Answer:
    await caller.without_email()
    return await caller.call(BODIES.get(caller.listing.name))


@causes("429 api_rate_limit", "verify")
async def with_many_wrong_links(caller: Caller) -> Answer:
    await caller.box.configure("limits", email_address={"count": 1, "per_s": 3600})
    caller.headers = {"X-Service-App-Id": "default"}
    await caller.call(query="?verify_code=x")
    return await caller.call(query="?verify_code=x")


@causes("429 api_rate_limit")
async def more_than_once_a_minute(caller: Caller) -> Answer:
    await caller.box.configure("limits", email_minute={"count": 1, "per_s": 60})
    body = await _for_own_address(caller)
    await caller.call(body)
    return await caller.call(body)


@causes("400 backend unavailable", "verify")
async def while_no_notice_of_the_verified_address_can_be_stored(caller: Caller) -> Answer:
    assert (await caller.call(query=await _verify_query(caller)))[0] == 200
    changed = {"email": new_address(), "platform": "ios"}
    assert await caller.box.post("me/email", changed, "PUT", **caller.session) == (200, None)
    link = link_in(await caller.box.mail(changed["email"]))
    await caller.execute(FULL)
    return await caller.call(query="?" + link.partition("?")[2])


@causes("400 backend unavailable")
async def while_no_mail_can_be_stored(caller: Caller) -> Answer:
    body = await _for_own_address(caller)
    await caller.execute(FULL)
    return await caller.call(body)


async def _for_own_address(caller: Caller) -> dict[str, Any]:
    """Return a valid body that names the address of a new user, or leads to it."""
    address = await caller.be_signed_up()
    body: dict[str, Any] = BODIES[caller.listing.name]
    return {**body, "email": address} if "email" in body else body


@causes("502 gateway", "login", "bind", "reauthorize")
async def while_the_platform_does_not_answer(caller: Caller) -> Answer:
    server, platform = caller.box.server, "social_network_a"
    subject = str(uuid4().int)[:15]
    if caller.listing.name == "reauthorize":
        caller.values["id"] = subject
        own = await proof(server, platform, subject)
        assert (await caller.box.post("me/socialaccount", own, **caller.session))[0] == 200
    return await caller.call(await proof(server, platform, subject, fault="unavailable"))


@causes("400 anonymous_login_not_allowed")
async def with_a_device_that_the_app_does_not_accept(caller: Caller) -> Answer:
    await caller.configure("auth", **AUTH, anonymous_login=False)
    return await caller.call({"device": {"id": "d"}})


@causes("400 account.auth_failed", "login")
async def with_an_unknown_name(caller: Caller) -> Answer:
    return await caller.call({"name_password": {"name": uuid4().hex, "password": PASSWORD}})


@causes("400 account.sp_auth_failed")
async def with_a_token_that_the_platform_refuses(caller: Caller) -> Answer:
    return await caller.call({"microblog": {"access_token": uuid4().hex}})


@causes("400 account.deactivate_pending_user")
async def of_a_frozen_user(caller: Caller) -> Answer:
    device = uuid4().hex
    uid, _ = await caller.box.server.login(device)
    freeze = "update users set status = 'frozen', freeze_time = now(), close_time = now() where uid = $1"
    await caller.execute(freeze, uid)
    return await caller.call({"device": {"id": device}})


@causes("400 operation_not_allowed")
async def while_a_withdrawal_is_in_progress(caller: Caller) -> Answer:
    await caller.execute(WITHDRAWAL, caller.values["user_id"])
    return await caller.call()


@causes("404 not_found")
async def of_a_user_that_does_not_exist(caller: Caller) -> Answer:
    assert (await caller.call())[0] == 200  # The session is in the cache from now on.
    await caller.execute("update users set status = 'deactivated' where uid = $1", caller.values["user_id"])
    return await caller.call()


@causes("400 account.email_invalid")
async def with_no_address(caller: Caller) -> Answer:
    return await caller.call({"email": "ada"})


@causes("400 account.email_login_not_allowed")
async def of_an_app_without_addresses(caller: Caller) -> Answer:
    await caller.without_email()
    return await caller.call(BODIES["detect"])


@causes("400 account.sp_linked_platform")
async def with_an_own_identity(caller: Caller) -> Answer:
    return await caller.call(await caller.linked())


@causes("400 account.sp_linked_another")
async def with_an_identity_of_another(caller: Caller) -> Answer:
    body = await caller.linked()
    await caller.be_new_user()
    return await caller.call(body)


async def _verify_query(caller: Caller) -> str:
    address = await caller.be_signed_up()
    return "?" + link_in(await caller.box.mail(address)).partition("?")[2]


async def _coded(caller: Caller, code: str | None, *, late: bool = False) -> Answer:
    """Call the endpoint with a code; with `late`, with one that has expired. `code`: a wrong one, or none."""
    name, box, address = caller.listing.name, caller.box, new_address()
    if name == "verify":
        query = await _verify_query(caller) if late else "" if code is None else f"?verify_code={code}"
        await box.later(86_400 * 8 if late else 0)
        return await caller.call(query=query)
    if name == "reset password":
        code = await box.reset_code(await caller.be_signed_up(), nth=2) if late else code
        await box.later(86_400 if late else 0)
        return await caller.call({"random_code": code, "password": NEW_PASSWORD})
    code = await box.code(address) if late else code
    await box.later(601 if late else 0)
    given = {"email": address, "verify_code": code}
    return await caller.call({"email_code": given} if name == "login" else {**given, "platform": "ios"})


@causes("400 account.code_empty")
async def without_a_code(caller: Caller) -> Answer:
    return await _coded(caller, None)


@causes("400 account.code_invalid")
async def with_a_wrong_code(caller: Caller) -> Answer:
    return await _coded(caller, "000000")


@causes("400 account.code_out_of_date")
async def with_an_old_code(caller: Caller) -> Answer:
    return await _coded(caller, None, late=True)


@causes("400 account.email_already_exists")
async def with_the_address_of_another(caller: Caller) -> Answer:
    taken = await caller.be_signed_up()
    await caller.be_new_user()
    code = await caller.box.code(taken, nth=2)
    return await caller.call({"email": taken, "platform": "ios", "verify_code": code})


@causes("400 account.user_already_bound_email")
async def with_a_second_address(caller: Caller) -> Answer:
    await caller.be_signed_up()
    second = new_address()
    code = await caller.box.code(second)
    return await caller.call({"email": second, "platform": "ios", "verify_code": code})


@causes("400 account.email_not_found")
async def of_a_user_without_an_address(caller: Caller) -> Answer:
    return await caller.call(BODIES.get(caller.listing.name))


@causes("400 account.sp_link_may_cause_ghost")
async def of_the_only_way_to_log_in(caller: Caller) -> Answer:
    await caller.be_signed_up()
    return await caller.call()
