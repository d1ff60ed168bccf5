"""Checks in the DNS whether receivers can believe the senders of emails: SPF, DKIM and DMARC of each domain."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import cache
from typing import Any

from dns.asyncresolver import Resolver
from dns.exception import DNSException
from dns.resolver import NXDOMAIN, NoAnswer, NoResolverConfiguration
from publicsuffixlist import PublicSuffixList

from app.doctor.findings import Area
from app.doctor.surroundings import Surroundings
from app.doctor.targets import unchecked, usable_configs
from app.settings import Settings
from storage.configs.kinds.base import ConfigKind
from storage.configs.kinds.email import EMAIL
from storage.configs.kinds.mail import MAIL
from storage.configs.kinds.mail_accounts import MAIL_ACCOUNTS
from storage.configs.store import ConfigStore
from storage.operators.doctor_reports import Finding
from streams.wire.mailbox import mailbox_of

AREA = Area("senders")
_KINDS: tuple[ConfigKind[Any], ...] = (MAIL_ACCOUNTS, MAIL, EMAIL)
_WITHIN_S = 5
_RESERVED = frozenset({"test", "example", "invalid", "localhost", "local"})
"""Top-level domains that are in no DNS (RFC 2606, RFC 6762)."""
_EXAMPLES = frozenset({"example.com", "example.net", "example.org"})
_REFUSE = "receivers may refuse emails, or show them as spam"


class _Unknown(Exception):
    """The DNS cannot be asked. The text says why."""


async def check(here: Surroundings) -> AsyncIterator[Finding]:
    for finding in unchecked(AREA, here, _KINDS):
        yield finding
    if here.configs is None:
        return
    domains = sorted(set(_domains(here.configs)))
    if not domains:
        return
    try:
        resolver = _resolver(here.settings)
        for found in await asyncio.gather(*(_check_domain(resolver, domain) for domain in domains)):
            for finding in found:
                yield finding
    except _Unknown as unknown:
        yield AREA.doubtful(
            "DNS",
            f"the DNS cannot be asked: {unknown}",
            why="SPF, DKIM and DMARC were not checked",
            fix="allow DNS, or set PARLEY_DNS",
        )


def _domains(configs: ConfigStore) -> Iterator[str]:
    """Yield the domains of all senders that may be in the DNS."""
    for kind in _KINDS:
        for _, _, value in usable_configs(configs, kind):
            if value.from_ is None:
                continue
            domain = mailbox_of(value.from_).address.rpartition("@")[2].lower()
            labels = domain.split(".")
            if len(labels) > 1 and labels[-1] not in _RESERVED and ".".join(labels[-2:]) not in _EXAMPLES:
                yield domain


def _resolver(settings: Settings) -> Resolver:
    try:
        resolver = Resolver(configure=not settings.dns_servers)
    except NoResolverConfiguration:
        raise _Unknown("the system has no DNS server") from None
    if settings.dns_servers:
        resolver.nameservers = [host for host, _ in settings.dns_servers]
        resolver.nameserver_ports = dict(settings.dns_servers)
    resolver.lifetime = _WITHIN_S
    return resolver


async def _check_domain(resolver: Resolver, domain: str) -> Sequence[Finding]:
    return await asyncio.gather(
        _check_spf(resolver, domain), _check_dkim(resolver, domain), _check_dmarc(resolver, domain)
    )


async def _check_spf(resolver: Resolver, domain: str) -> Finding:
    point = f"SPF of {domain}"
    records = [text for text in await _texts(resolver, domain) or () if text.lower().split(" ")[0] == "v=spf1"]
    match records:
        case []:
            return AREA.doubtful(
                point,
                "there is no record",
                why=_REFUSE,
                fix=f"publish the TXT record of {domain} that your mail service names: v=spf1 include:… -all",
            )
        case [record]:
            return AREA.good(point, record)
        case _:
            return AREA.broken(
                point,
                f"there are {len(records)} records: {', '.join(records)}",
                why="receivers accept none of them (RFC 7208, section 4.5)",
                fix="join them into one",
            )


async def _check_dkim(resolver: Resolver, domain: str) -> Finding:
    """Only a signature names its key, so all that can be seen is whether the domain has keys."""
    point, parent = f"DKIM of {domain}", f"_domainkey.{domain}"
    if await _texts(resolver, parent) is not None:
        return AREA.good(point, "the domain has keys; whether the mail server signs with one was not checked")
    return AREA.doubtful(
        point,
        f"there is no name below {parent}, so there is no key",
        why=_REFUSE,
        fix="let your mail service sign, and publish the key that it shows",
    )


async def _check_dmarc(resolver: Resolver, domain: str) -> Finding:
    point = f"DMARC of {domain}"
    for name in dict.fromkeys([domain, _suffixes().privatesuffix(domain) or domain]):
        texts = await _texts(resolver, f"_dmarc.{name}") or ()
        records = [text for text in texts if text.replace(" ", "").startswith("v=DMARC1")]
        if len(records) == 1:
            return AREA.good(point, f"_dmarc.{name}: {records[0]}")
        if records:
            return AREA.doubtful(
                point,
                f"_dmarc.{name} has {len(records)} records",
                why="receivers ignore all of them (RFC 7489, section 6.6.3)",
                fix="keep one",
            )
    return AREA.doubtful(
        point,
        f"there is no record at _dmarc.{domain}",
        why=_REFUSE,
        fix=f"publish a TXT record there, such as v=DMARC1; p=quarantine; rua=mailto:postmaster@{domain}",
    )


async def _texts(resolver: Resolver, name: str) -> list[str] | None:
    """Return the TXT records of a name, or `None` if neither it nor a name below it exists (RFC 8020)."""
    try:
        answer = await resolver.resolve(name, "TXT")
    except NoAnswer:
        return []
    except NXDOMAIN:
        return None
    except (DNSException, OSError) as error:
        raise _Unknown(f"{name}: {str(error).rstrip('.') or type(error).__name__}") from None
    return [b"".join(record.strings).decode("utf-8", "replace") for record in answer]


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()
