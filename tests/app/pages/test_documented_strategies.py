"""The tables of platforms and strategies in docs/guides/strategies.md list exactly what the models have."""

import re
from collections.abc import Iterator

from storage.configs.kinds import KINDS
from storage.configs.kinds.strategies import VendorCall
from streams.wire.model import Model
from tests.code.source_files import ROOT
from vendors.catalog import CAPABILITIES, CATALOG

PAGE = (ROOT / "docs/guides/strategies.md").read_text()
STRATEGIES = ("conversation", "speech", "recognition", "pronunciation")
KIND_OF = {"chat": "conversation", "assessment": "pronunciation"}
"""The kinds of strategies whose names differ from those of their capabilities."""


def table(first_row: str) -> list[list[str]]:
    """Return the cells of the table that begins with `first_row`."""
    _, _, after = PAGE.partition(f"{first_row}\n")
    rows = after.split("\n\n", 1)[0].splitlines()[1:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def names(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def paths(model: type[Model], before: str = "") -> Iterator[str]:
    """Yield the fields of a strategy. Those of its vendor call have the path of the call."""
    for name, field in model.model_fields.items():
        types = [field.annotation, *getattr(field.annotation, "__args__", ())]
        calls = [kind for kind in types if isinstance(kind, type) and issubclass(kind, VendorCall)]
        if field.annotation not in calls:
            yield before + name
        for call in calls:
            yield from paths(call, f"{name}." if field.annotation is call else f"{name}[].")


def fields_table() -> list[list[str]]:
    return table("| conversation | speech | recognition | pronunciation | meaning |")


def test_the_table_of_strategies_has_every_field_at_its_path():
    rows = fields_table()
    for column, kind in enumerate(STRATEGIES):
        listed = [path for row in rows for path in names(row[column])]
        assert sorted(listed) == sorted(paths(KINDS[kind].model)), kind


def test_fields_of_timeouts_and_prices_are_explained():
    meaning = {row[1]: row[-1] for row in fields_table()}
    for name in ("waits", "price"):
        model = VendorCall.model_fields[name].annotation
        assert isinstance(model, type)
        assert names(meaning[f"`{name}`"]) == set(model.model_fields)


def test_the_table_of_platforms_has_every_platform_with_its_aliases_and_kinds():
    listed = {row[0]: (names(row[1]), names(row[3])) for row in table("| platform | alias | vendor | kinds |")}
    assert listed == {
        f"`{platform}`": (
            set(entry.aliases),
            {
                KIND_OF.get(capability.name, capability.name)
                for capability in CAPABILITIES
                if platform in capability.vendors
            },
        )
        for platform, entry in CATALOG.items()
    }
