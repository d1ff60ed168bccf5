"""Whether a position in the Markdown of an answer is in code."""

import pytest

from vendors.chat.markdown import MarkdownPlace


def is_code(text: str, size: int = 7) -> bool:
    """Read a text in pieces, which do not split a run of backticks, and return whether its end is in code."""
    unread: list[str] = []
    place = MarkdownPlace(unread)
    for at in range(0, len(text), size):
        unread.append(text[at : at + size])
        if "`" not in text[at + size - 1 : at + size + 1]:
            place.is_code()
    return place.is_code()


@pytest.mark.parametrize(
    "text",
    [
        "```\na",
        "> ```\n> code\n> a",
        "```\na\n```python\nb",
        "~~~\na\n~~~Then: ```\nb",
        "- a\n  ```\n  code\n\n  b",
        "1. a\n   ```\ncode\n\ncode",
        f"Here: {'a ' * 300}```\nx",
        f"{'a ' * 200}```b``` {'a ' * 200} ```\nx",
    ],
)
def test_code_continues_until_its_end(text: str):
    assert is_code(text)


@pytest.mark.parametrize(
    "text",
    [
        "```\na\n```\nb",
        "```\na```\nb",
        "```\na\n```.\nb",
        "```\na\n```Then b.\nc",
        "```\na\n```、b\nc",
        "1. a\n   ```\n   b\n```Then c.\nd",
        "> ```\n> code\n\nAfter",
        "> ```\n> code\nAfter",
        "- a\n  ```\n  code\n\nAfter",
        "1. ```\n   code\n2. next",
        "1. a\n   ```\n   code\n```\nb",
        f"{'a ' * 200}```b {'c ' * 200} ```\nx",
        f"```{'a ' * 200}`{'a ' * 200}\nx",
    ],
)
def test_code_ends_with_its_fence_or_with_what_it_is_in(text: str):
    assert not is_code(text)
