"""Templates of operators only look up values by dotted names."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.wire.template import render

VALUES = {"name": "Ada", "user": {"age": 7, "pet": {"name": "Rex"}}, "on": True, "off": False, "ratio": 1.5}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("Hi {{.name}}!", "Hi Ada!"),
        ("{{ .name }}{{.user.age}}", "Ada7"),
        ("{{.user.pet.name}}", "Rex"),
        ("{{.on}} {{.off}} {{.ratio}}", "true false 1.5"),
        ("[{{.none}}] [{{.user.none}}] [{{.name.first}}] [{{.user}}]", "[] [] [] []"),
        (
            "{{name}} {{ . }} {{.}} {{..name}} {.name} {{.a b}}",
            "{{name}} {{ . }} {{.}} {{..name}} {.name} {{.a b}}",
        ),
        ("{{{.name}}}", "{Ada}"),
        ("{{\n.name\t}}", "Ada"),
        ("", ""),
    ],
)
def test_placeholders_are_filled(template: str, text: str):
    assert render(template, VALUES) == text


@pytest.mark.parametrize("value", [None, [], ["a"], {}, {"a": 1}])
def test_values_that_are_not_scalars_render_as_empty_text(value: Any):
    assert render("<{{.value}}>", {"value": value}) == "<>"


def test_values_are_not_rendered_again():
    assert render("{{.a}}{{.b}}", {"a": "{{.b}}", "b": "{{.a}}"}) == "{{.b}}{{.a}}"


@pytest.mark.parametrize("name", ["__class__", "keys", "format", "0"])
def test_attributes_and_positions_are_not_reached(name: str):
    assert render("{{.user.NAME}}{{.name.NAME}}".replace("NAME", name), VALUES) == ""


@given(st.text(st.characters(exclude_characters="}")), st.text(st.characters(exclude_characters="}")))
def test_text_around_a_placeholder_is_unchanged(before: str, after: str):
    expected = f"{before}|Ada|{after}"

    assert render(f"{before}|{{{{.name}}}}|{after}", VALUES) == expected
