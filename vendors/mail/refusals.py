"""Says whose fault it is that a mail server refuses an email: the account's, the recipient's, or the content's.

Only a fault of the account concerns further emails. Anybody can ask for an email to an address that the server
refuses, or put text that its filter refuses into an email, so neither may count against the account. The reply's
enhanced code says what it is about (RFC 3463, and RFC 6531 for SMTPUTF8), whatever command it answers. Without one,
its code does (RFC 5321, section 4.2.3).
"""

import re
from typing import Literal, NamedTuple

Command = Literal["MAIL", "RCPT", "DATA"]
"""The command that was refused. `DATA` stands for the complete email, too."""
Fault = Literal["account", "recipient", "content"]

PERMANENT = 500
_ENHANCED = re.compile(r"[245]\.(\d{1,3})\.(\d{1,3})\b")
"""Stands at the beginning of the text (RFC 2034). The rest may repeat what somebody else has chosen."""
_ABOUT_THE_CONNECTION = frozenset({421, 530, 534, 535, 538})
"""The server closes, or wants another login or TLS (RFC 4954, RFC 3207): it refuses everything."""
_ABOUT_THE_SENDER = frozenset({"7", "8"})
"""Details of X.1: syntax and host of the sender's address."""
_TOO_LARGE = ("3", "4")
_BY_SUBJECT: dict[str, Fault] = {
    "1": "recipient",
    "2": "recipient",
    "3": "account",
    "4": "account",
    "5": "account",
    "6": "content",
    "7": "content",
}
"""X.7 is policy, which is that of a filter once the server has accepted the sender and the recipient."""
_BY_CODE: dict[int, Fault] = {
    450: "recipient",
    550: "content",
    551: "recipient",
    552: "content",
    553: "recipient",
    554: "content",
}


class Reply(NamedTuple):
    code: int
    text: str

    @property
    def shown(self) -> str:
        """Its codes, such as `550 5.1.1`. Its text may repeat the address."""
        found = _ENHANCED.match(self.text)
        return f"{self.code} {found[0]}" if found else str(self.code)


def fault_of(command: Command, reply: Reply) -> Fault:
    """Return whose fault it is that `command` got the reply, which refuses it."""
    if reply.code in _ABOUT_THE_CONNECTION:
        return "account"
    found = _ENHANCED.match(reply.text)
    subject, detail = (found[1], found[2]) if found else ("", "")
    if subject == "1" and detail in _ABOUT_THE_SENDER:  # Some servers say so only when they get the recipient.
        return "account"
    if command == "RCPT":
        return "recipient"
    if (subject, detail) == _TOO_LARGE:
        return "content"
    if command == "MAIL":  # It names the sender and the size, and whether addresses need SMTPUTF8.
        return "content" if subject == "6" or (reply.code == 552 and not found) else "account"
    return _BY_SUBJECT.get(subject) or _BY_CODE.get(reply.code, "account")
