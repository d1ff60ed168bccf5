"""Writes configs of all kinds for several apps as an operator would, with checks, revisions and audit log."""

from collections.abc import Iterator
from itertools import chain, islice
from itertools import count as numbers
from pathlib import Path
from typing import Any

from app.commands.config_files import read_folder
from bench.console.rows import APPS
from storage.configs.kinds import KINDS
from storage.configs.kinds.apps import APPS as APP_KIND
from storage.configs.rows import ConfigKey
from storage.configs.store import ConfigStore
from storage.operators.audit import COMMAND

_SEEDS = Path(__file__).parents[2] / "deploy" / "seed"
PRODUCT = ConfigKey("default", "products", "coins_100")
"""The config with the most revisions."""
_REVISIONS = 500
# The kinds that the seed does not have, and the one whose secrets come from the environment.
_FURTHER: dict[tuple[str, str], Any] = {
    ("auth", "default"): {"require_sign": False},
    ("events", "hook"): {"stream": "events", "events": ["asset"]},
    ("share_groups", "family"): {"quota": 5, "platforms": ["cardpay"]},
    ("iplocation", "default"): {},
}


async def write_configs(configs: ConfigStore, *, count: int) -> None:
    """Write `count` configs, most of them copies of those of the seed with other names."""
    values = _values()
    async with configs.editing(author="bench", origin=COMMAND) as edit:
        for number, (key, value) in enumerate(islice(_all(values), count)):
            await edit.put(key, value, comment=f"ticket {number}")
        for number in range(min(_REVISIONS, count)):
            value = values[PRODUCT.kind, PRODUCT.name] | {"quantity": 100 + number}
            await edit.put(PRODUCT, value, comment=f"change {number}")


def _values() -> dict[tuple[str, str], Any]:
    """Return values by kind and name, in the order of the kinds: later ones refer to earlier ones."""
    files = [*read_folder(_SEEDS / "development"), *read_folder(_SEEDS / "engines")]
    found = {(file.key.kind, file.key.name): file.value for file in files} | _FURTHER
    order = list(KINDS)
    return dict(sorted(found.items(), key=lambda item: order.index(item[0][0])))


def _all(values: dict[tuple[str, str], Any]) -> Iterator[tuple[ConfigKey, Any]]:
    """Yield the apps, all configs of each app, and copies without end."""
    apps = [(ConfigKey(app_id, *name), value) for name, value in values.items() for app_id in APPS]
    first = [pair for pair in apps if pair[0].kind == APP_KIND.name]
    others = sorted((pair for pair in apps if pair not in first), key=lambda pair: APPS.index(pair[0].app_id))
    copies = (
        (key._replace(name=f"{key.name}.{number}"), value)
        for number in numbers(1)
        for key, value in others
        if not KINDS[key.kind].singleton and not KINDS[key.kind].names
    )
    return chain(first, others, copies)
