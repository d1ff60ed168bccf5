"""Reads the expressions of rules and boards: which metrics and labels they name."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from streams.wire.codec import loads
from tests.code.source_files import ROOT

DEPLOY = ROOT / "deploy"
_STRING = re.compile(r'"[^"]*"')
_GROUPING = re.compile(r"\b(?:by|without)\s*\(([^)]*)\)")
_MATCHERS = re.compile(r"\{([^}]*)\}")
_LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_RANGE = re.compile(r"\[[^]]*\]|\boffset\s+\w+")
_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*(?!\w|\s*\()")
_WORDS = {"and", "or", "unless", "on", "bool", "by", "without"}


@dataclass(frozen=True)
class Expression:
    """An expression, and the file and the rule or panel that it is of."""

    where: str
    text: str

    @property
    def metrics(self) -> set[str]:
        bare = _RANGE.sub("", _MATCHERS.sub("", _GROUPING.sub("", _STRING.sub("", self.text))))
        return {name for name in _NAME.findall(bare) if name not in _WORDS}

    @property
    def labels(self) -> set[str]:
        bare = _STRING.sub("", self.text)
        grouped = ",".join(_GROUPING.findall(bare)).split(",")
        matched = [label for inner in _MATCHERS.findall(bare) for label in _LABEL.findall(inner)]
        return {label.strip() for label in (*grouped, *matched) if label.strip()}


def rules_of(name: str) -> list[dict[str, Any]]:
    """Return the rules of a file in `deploy/prometheus`."""
    file = yaml.safe_load((DEPLOY / "prometheus" / name).read_text())
    return [rule for group in file["groups"] for rule in group["rules"]]


def boards() -> dict[str, dict[str, Any]]:
    return {path.name: loads(path.read_bytes()) for path in sorted((DEPLOY / "grafana").glob("*.json"))}


def expressions() -> Iterator[Expression]:
    """Yield all expressions of the rules, the alerts and the boards."""
    for name in ("rules.yml", "alerts.yml"):
        for rule in rules_of(name):
            yield Expression(f"{name}: {rule.get('record') or rule['alert']}", rule["expr"])
    for name, board in boards().items():
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield Expression(f"{name}: {panel['title']}", target["expr"])
