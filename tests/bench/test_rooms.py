"""The counts of rooms, and the bound on their size."""

import pytest

from bench import rooms

# One worker parses all modules, once.
pytestmark = pytest.mark.xdist_group("rooms")


def test_a_room_that_grows_past_its_bound_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rooms.main(["--check"]) == 0
    [largest] = [room.modules for room in rooms.rooms() if room.name == "actors/runtime"]
    monkeypatch.setattr(rooms, "BOUND", largest - 1)
    assert rooms.main(["--check"]) == 1
    assert f"actors/runtime has {largest} modules, more than {largest - 1}" in capsys.readouterr().out


def test_a_table_of_equals_that_is_small_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rooms.EQUALS, "streams/wire", "one each")
    assert [*rooms.too_large()] == ["streams/wire has 20 modules or fewer: remove it from EQUALS in bench/rooms.py"]


def test_a_prefix_of_many_modules_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    room = rooms.ROOT / "streams/wire"
    named = [room / name for name in ("card_a.py", "test_card_b.py", "card_c.py", "card.py", "cards_d.py")]
    monkeypatch.setattr(rooms, "PREFIXES", {})

    monkeypatch.setattr(rooms, "paths", lambda _: named)
    assert [*rooms.shared_prefixes()] == []
    monkeypatch.setattr(rooms, "paths", lambda _: [*named, room / "card_e.py"])
    assert [*rooms.shared_prefixes()] == ["4 modules begin with streams/wire/card_: give them a folder"]
    monkeypatch.setattr(rooms, "too_large", list)
    assert rooms.main(["--check"]) == 1
    assert "streams/wire/card_" in capsys.readouterr().out

    monkeypatch.setattr(rooms, "PREFIXES", {"streams/wire/card_": "these are four sizes"})
    assert [*rooms.shared_prefixes()] == []


def test_an_exception_for_a_prefix_of_few_modules_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rooms.PREFIXES, "streams/wire/card_", "these are four sizes")
    assert [*rooms.shared_prefixes()] == [
        "fewer than 4 modules begin with streams/wire/card_: remove it from PREFIXES in bench/rooms.py"
    ]


@pytest.mark.parametrize(
    ("arrows", "levels"),
    [([], 1), ([("a", "b")], 2), ([("a", "b"), ("b", "c"), ("a", "c")], 3), ([("a", "b"), ("b", "a")], None)],
)
def test_levels_are_the_longest_chain(arrows: list[tuple[str, str]], levels: int | None) -> None:
    assert rooms.levels(arrows, "abc") == levels


def test_rooms_are_counted() -> None:
    found = {room.name: room for room in rooms.rooms()}
    assert found["actors"].levels == 4
    assert found["storage"].modules < found["storage/accounts"].modules
