"""The contract `room_layers` gives each module that no layer names the place of `*`."""

import pytest
from grimp import ImportGraph

from tests.code.room_layers import RoomLayers, with_others


def graph(*imports: tuple[str, str]) -> ImportGraph:
    found = ImportGraph()
    for module in ("app", "app.main", "app.mail", "app.geo", "app.http"):
        found.add_module(module)
    for importer, imported in imports:
        found.add_import(importer=f"app.{importer}", imported=f"app.{imported}", line_number=1, line_contents="")
    return found


def is_kept(found: ImportGraph, *layers: str) -> bool:
    contract = RoomLayers("rooms", {"root_packages": ["app"]}, {"containers": ["app"], "layers": list(layers)})
    return contract.check(found, verbose=False).kept


def test_other_modules_stand_where_the_asterisk_is() -> None:
    modules = {"main", "mail", "geo", "http"}
    assert with_others(["main", "*", "http"], modules) == ["main", "geo | mail", "http"]
    assert with_others(["main", "mail | *", "http"], modules) == ["main", "mail | geo", "http"]
    assert with_others(["main", "geo | mail", "*", "http"], modules) == ["main", "geo | mail", "http"]


def test_imports_of_lower_layers_are_allowed() -> None:
    assert is_kept(graph(("main", "mail"), ("mail", "http"), ("geo", "http")), "main", "*", "http")


@pytest.mark.parametrize("wrong", [("mail", "geo"), ("geo", "mail"), ("http", "mail"), ("mail", "main")])
def test_other_imports_break_the_contract(wrong: tuple[str, str]) -> None:
    assert not is_kept(graph(wrong), "main", "*", "http")
