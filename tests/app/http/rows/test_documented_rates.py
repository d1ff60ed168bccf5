"""The table in docs/operating/rate-limits.md lists all rates of the config kind `limits`, with their defaults."""

from storage.configs.kinds.limits import RATES, Rate
from tests.code.source_files import ROOT

PAGE = (ROOT / "docs" / "operating" / "rate-limits.md").read_text()
PERIODS = {2: "in 2 seconds", 60: "a minute", 900: "in 15 minutes", 3600: "an hour", 86_400: "a day"}


def written(rate: Rate) -> str:
    return f"{rate.count} {PERIODS[int(rate.per_s)]}"


def test_all_rates_are_documented_with_their_defaults() -> None:
    _, _, after = PAGE.partition("| rate | counts | default |\n|---|---|---|\n")
    rows = [row.strip("|").split("|") for row in after.partition("\n\n")[0].splitlines()]
    documented = {name.strip(" `"): default.strip() for name, _, default in rows}
    assert documented == {name: written(rate) for name, rate in RATES.items()}
