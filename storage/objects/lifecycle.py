"""Lifecycle rules: which objects a bucket deletes by itself at a certain age."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_RULES = 1_000
"""The limit of S3 for one bucket."""
_OWN = "parley-"
_UPLOAD_DAYS = 1
"""Far longer than any upload takes."""


class Expiry(NamedTuple):
    """Objects whose keys begin with `prefix` are deleted when they are `days` old."""

    prefix: str
    days: int

    def overlaps(self, prefix: str) -> bool:
        """Return whether some keys may begin with both prefixes."""
        return prefix.startswith(self.prefix) or self.prefix.startswith(prefix)


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """What a store deletes by itself. A folder deletes nothing, nor does a bucket without rules."""

    expiries: Sequence[Expiry] = ()
    aborts_uploads: bool = False
    """Whether uploads of which only some parts have arrived are deleted."""
    unknown: str = ""
    """Why the rules of the bucket cannot be read. Nothing may be left to them then."""

    def deletes(self, wanted: Expiry) -> bool:
        """Return whether all objects of `wanted` are deleted at that age or earlier."""
        return any(wanted.prefix.startswith(rule.prefix) and rule.days <= wanted.days for rule in self.expiries)

    def early(self, wanted: Expiry) -> int | None:
        """Return the age at which some objects of `wanted` are deleted, if that is too early."""
        days = [rule.days for rule in self.expiries if rule.overlaps(wanted.prefix)]
        return min(days) if days and min(days) < wanted.days else None


def lifecycle_of(rules: Iterable[Mapping[str, Any]]) -> Lifecycle:
    """Return what the rules of a bucket mean, which are as the S3 client returns them."""
    enabled = [rule for rule in rules if rule.get("Status") == "Enabled"]
    return Lifecycle(
        expiries=tuple(
            Expiry(prefix, rule["Expiration"]["Days"])
            for rule in enabled
            if (prefix := _prefix(rule)) is not None and "Days" in rule.get("Expiration", {})
        ),
        aborts_uploads=any(_prefix(rule) == "" and "AbortIncompleteMultipartUpload" in rule for rule in enabled),
    )


def _prefix(rule: Mapping[str, Any]) -> str | None:
    """Return the prefix of the keys to which a rule applies, or `None` if it has other conditions, such as tags."""
    conditions = rule.get("Filter", rule)  # In rules of the first version, the prefix was a field of the rule.
    prefix: str | None = conditions.get("Prefix", "")
    return prefix if "Filter" not in rule or set(conditions) <= {"Prefix"} else None


def rules_for(expiries: Iterable[Expiry]) -> list[dict[str, Any]]:
    """Return a rule for each of `expiries`."""
    return [
        _rule(prefix.strip("/").replace("/", "-"), prefix, {"Expiration": {"Days": days}})
        for prefix, days in expiries
    ]


def rule_for_uploads() -> dict[str, Any]:
    """Return a rule for uploads that their process did not finish."""
    return _rule("incomplete", "", {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": _UPLOAD_DAYS}})


def _rule(name: str, prefix: str, action: dict[str, Any]) -> dict[str, Any]:
    return {"ID": f"{_OWN}{name}", "Status": "Enabled", "Filter": {"Prefix": prefix}, **action}


def others_of(rules: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rules that were not made by `rules_for`."""
    return [rule for rule in rules if not rule.get("ID", "").startswith(_OWN)]
