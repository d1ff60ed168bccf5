"""The small pages of the HTTP layer: the colour of the text on their buttons."""

import pytest

from app.http.html import Html, text_on


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, by WCAG 2.2."""
    lighter, darker = sorted(map(luminance, (one, other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(color: str) -> float:
    channels = [part / 255 for part in bytes.fromhex(color.removeprefix("#"))]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(
    ("color", "text"),
    [
        ("#ffd400", "#000"),
        ("#FFFFFF", "#000"),
        ("#7f7f7f", "#000"),
        ("#1f6feb", "#fff"),
        ("#767676", "#fff"),
        ("#000000", "#fff"),
    ],
)
def test_the_text_of_a_button_is_black_or_white_whichever_can_be_read(color: str, text: str):
    assert text_on(color) == text
    assert contrast(color, text.replace("#fff", "#ffffff").replace("#000", "#000000")) >= 4.5
    page = Html("Title", "<button>Save</button>", color=color).response().text
    assert f"--accent: {color}; --on-accent: {text};" in page


def test_any_colour_has_a_readable_text():
    for level in range(256):
        for color in (f"#{level:02x}0000", f"#00{level:02x}00", f"#{level:02x}{level:02x}{level:02x}"):
            assert contrast(color, {"#fff": "#ffffff", "#000": "#000000"}[text_on(color)]) >= 4.5, color
