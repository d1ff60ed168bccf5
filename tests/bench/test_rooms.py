"""The counts of rooms, and the bound on their size."""

import pytest

from bench import rooms


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
