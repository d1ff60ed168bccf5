"""What a mail server refuses is the fault of the account, of the recipient or of the content."""

from datetime import UTC, datetime

import pytest

from streams.wire.errors import BackendUnavailable
from streams.wire.mailbox import Mailbox
from tests.app.mail.smtp_servers import ACCEPT, SmtpServer
from vendors.account import Account
from vendors.errors import Refused
from vendors.mail.message import Mail, build
from vendors.mail.smtp import ContentRefused, RecipientDeferred, RecipientRefused, SmtpClient, SmtpOptions

SENDER, TO = "a@example.com", "b@example.com"
TO_SENDER: dict[str, type[BackendUnavailable]] = {
    "550 5.1.8 the domain of the sender does not exist": Refused,
    "553 5.1.7 bad sender": Refused,
    "550 5.7.60 not allowed to send as a@example.com": Refused,
    "451 4.7.1 too many emails": Refused,
    "552 the size exceeds the limit": ContentRefused,
    "552 5.3.4 too large": ContentRefused,
    "550 5.6.7 needs SMTPUTF8": ContentRefused,
}
TO_RECIPIENT = {
    "450 4.2.1 too many emails to this mailbox": RecipientDeferred,
    "451 4.7.1 greylisted": RecipientDeferred,
    "452 4.2.2 full": RecipientDeferred,
    "450 no": RecipientDeferred,
    "550 5.1.1 unknown": RecipientRefused,
    "553 5.1.3 odd": RecipientRefused,
    "553 5.6.7 needs SMTPUTF8": RecipientRefused,
    "554 5.7.1 <5.3.0@example.com>: access denied": RecipientRefused,
    "550 5.1.8 the domain of the sender does not exist": Refused,
    "421 4.3.2 closing": Refused,
    "530 5.7.0 log in first": Refused,
}
TO_EMAIL = {
    "552 5.2.2 full": RecipientRefused,
    "452 4.2.2 full": RecipientDeferred,
    "450 busy": RecipientDeferred,
    "550 5.1.1 unknown": RecipientRefused,
    "550 5.1.8 the domain of the sender does not exist": Refused,
    "554 5.7.1 spam": ContentRefused,
    "554 <5.3.0@example.com>: spam": ContentRefused,
    "451 4.7.1 greylisted": ContentRefused,
    "550 5.6.0 odd": ContentRefused,
    "552 5.3.4 too large": ContentRefused,
    "554 no": ContentRefused,
    "451 4.3.0 an error here": Refused,
    "452 4.3.1 the disk is full": Refused,
    "421 4.7.0 too many emails from here": Refused,
    "451 an error here": Refused,
    "500 5.5.2 what": Refused,
}


async def refusal(server: SmtpServer, *, to: str = TO, sender: str = SENDER) -> BackendUnavailable:
    account = Account(name="main", platform="smtp", base_url=f"smtp://127.0.0.1:{server.port}")
    client = SmtpClient(None, account, SmtpOptions("none", "", "parley.example.com"))
    mail = Mail("1", Mailbox("", sender), to, "News", "Hello\n")
    message = build(mail, host="parley.example.com", at=datetime(2026, 1, 2, tzinfo=UTC))
    with pytest.raises(BackendUnavailable) as failed:
        await client.send(message, sender=sender, to=to)
    return failed.value


@pytest.mark.parametrize(
    ("command", "replies"), [("sender", TO_SENDER), ("recipient", TO_RECIPIENT), ("email", TO_EMAIL)]
)
async def test_a_reply_says_whose_fault_it_is(command: str, replies: dict[str, type[BackendUnavailable]]):
    server, found = SmtpServer(), {}
    async with server.listening():
        for reply in replies:
            server.to_sender = reply if command == "sender" else ACCEPT
            server.to_recipient = reply if command == "recipient" else ACCEPT
            server.answer = lambda _, answer=reply: answer
            error = await refusal(server)
            found[reply] = type(error)
            assert "@" not in str(error)
            assert reply[:3] in str(error)
    assert found == replies


async def test_an_address_that_the_server_cannot_write_is_the_fault_of_its_owner():
    server = SmtpServer()
    async with server.listening(smtputf8=False):
        assert type(await refusal(server, to="jörg@example.com")) is RecipientRefused
        assert type(await refusal(server, sender="jörg@example.com")) is Refused
