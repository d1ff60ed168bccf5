"""Headers of emails, as other programs read them: old parsers and new ones find the same address and text."""

from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.header import decode_header, make_header
from email.utils import getaddresses

import pytest
from aiosmtplib.email import flatten_message
from hypothesis import example, given
from hypothesis import strategies as st

from streams.wire.mailbox import Mailbox, mailbox_of
from vendors.mail.message import Mail, build

AT = datetime(2026, 1, 2, tzinfo=UTC)
ADDRESS = "team@example.com"
LINE = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=120)
SPECIAL = st.text(st.sampled_from(list(",:;@\"\\()<>=?_. ab'[]\u200d\xa0\u3000é")), max_size=160)
TEXT = LINE | SPECIAL | st.lists(st.sampled_from(["=?utf-8?q?x?=", "=?", "?=", " ", "a" * 80, ";"])).map("".join)
ATOM = st.text(st.sampled_from("aZ0!#$%&'*+-/=^_`{|}~"), min_size=1, max_size=30)
RECIPIENT = st.lists(ATOM, min_size=1, max_size=3).map(lambda atoms: ".".join(atoms) + "@example.org")


def sent(*, sender: Mailbox, to: str = "ada@example.org", subject: str = "News") -> bytes:
    """The bytes of an email, as the client of mail servers sends them."""
    mail = Mail("1", sender, to, subject, "Hello\n", reply_to=sender)
    return flatten_message(build(mail, host="parley.example.com", at=AT))


def decoded(value: object) -> str:
    """What the header says, for a program that decodes encoded words in the text of unfolded lines."""
    return str(make_header(decode_header(str(value).replace("\r\n", "").replace("\n", ""))))


@given(name=TEXT, subject=TEXT, to=RECIPIENT)
@example(name="Doe, Jane", subject="=?utf-8?q?Free?= coins", to="a@example.org")
@example(name=f"{'x' * 78}: a@example.net, b; c", subject="", to="a@example.org")
@example(name=f'{"é" * 60}: "a@example.net"', subject="  two  spaces  ", to="a@example.org")
def test_each_parser_reads_one_address_and_the_same_text(name: str, subject: str, to: str):
    raw = sent(sender=Mailbox(name, ADDRESS), to=to, subject=subject)
    head = raw.partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert all(line.strip() for line in head)
    assert all(len(line) <= 78 for line in head if not line.startswith(b"To:"))
    old, new = message_from_bytes(raw), message_from_bytes(raw, policy=policy.default)
    assert decoded(old["Subject"]) == subject
    for header in ("From", "Reply-To"):
        [(said, address)] = getaddresses([old[header]])
        assert (decoded(said).strip(), address) == (name.strip(), ADDRESS)
        [group] = new[header].groups
        assert [found.addr_spec for found in group.addresses] == [ADDRESS]
    assert getaddresses([old["To"]]) == [("", to)]


@given(name=TEXT)
def test_a_quoted_name_may_contain_everything(name: str):
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    found = mailbox_of(f'"{quoted}" <{ADDRESS}>')
    assert found.address == ADDRESS
    assert found.name == name.strip() or "=?" in name


@given(name=TEXT)
def test_a_sender_is_one_address_or_refused(name: str):
    try:
        found = mailbox_of(f"{name} <{ADDRESS}>")
    except ValueError:
        assert set(name) & set('"\\<>@,:;')
        return
    assert getaddresses([message_from_bytes(sent(sender=found))["From"]])[0][1] == found.address == ADDRESS


@pytest.mark.parametrize(
    ("text", "name", "address"),
    [
        ("hello@example.com", "", "hello@example.com"),
        (" Example <hello@example.com> ", "Example", "hello@example.com"),
        ('"Doe, Jane" <jane@example.com>', "Doe, Jane", "jane@example.com"),
        ('"A \\"B\\"; C:" <a@example.com>', 'A "B"; C:', "a@example.com"),
        ("Acme Inc. (Sales) <a@example.com>", "Acme Inc. (Sales)", "a@example.com"),
        ("=?utf-8?q?B=C3=A4r?= <a@example.com>", "Bär", "a@example.com"),
        ("a@example.com (Ann)", "Ann", "a@example.com"),
        ("क्\u200dष\xa0x\u3000y <a@bücher.example>", "क्\u200dष\xa0x\u3000y", "a@xn--bcher-kva.example"),
        ("root@localhost", "", "root@localhost"),
    ],
)
def test_a_sender_is_read(text: str, name: str, address: str):
    assert mailbox_of(text) == (name, address)


@pytest.mark.parametrize(
    "text",
    [
        "Doe, Jane <jane@example.com>", "Team: a@example.com;", "Team: a@example.com, b@example.com;", "Team:;",
        "a@example.com, b@example.com", "a@example.com <b@example.com>", "News: Ada <a@example.com>", "Ada", "",
        "@example.com", "a@", "a b@example.com", "a..b@example.com", "Ada <a@example.com> x", "<a@example.com",
        '"Ada <a@example.com>', "Ada\u2028<a@example.com>", '"Ada\r\nBcc: e@example.com" <a@example.com>',
        "=?utf-8?q?a=0D=0AB?= <a@example.com>", "=?utf-8?q?e=40example=2Enet=2C?=@example.com",
    ],
)  # fmt: skip
def test_what_is_not_one_address_is_refused(text: str):
    with pytest.raises(ValueError, match=r"^not "):
        mailbox_of(text)


@pytest.mark.parametrize("break_", ["\r\n", "\n", "\x0b", "\x85", "\u2028", "\u2029", "\x00"])
def test_a_line_break_is_refused(break_: str):
    with pytest.raises(ValueError, match="Subject must be one line"):
        sent(sender=Mailbox("", ADDRESS), subject=f"a{break_}b")
    with pytest.raises(ValueError, match="From must be one line"):
        sent(sender=Mailbox(f"a{break_}b", ADDRESS))
