"""The HTML of the built-in emails: one card in the app's colour, with a code or a button.

Mail programs ignore much of CSS (https://www.caniemail.com), so the layout consists of tables, and its rules are
inline. Only the colours of the dark scheme are in a style sheet. Programs that ignore it show the light scheme. An
email loads nothing, and has no scripts.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from app.http.html import text_on

CODE, LINK, NOT_ME, REQUESTED = "{{.Code}}", "{{.Link}}", "{{.NotMeLink}}", "{{.Requested}}"
"""The paragraphs that are more than text."""
_FONT = "system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
_MONO = "ui-monospace,Menlo,Consolas,monospace"
_LIGHT = {
    "page": "#f6f7f9",
    "card": "#ffffff",
    "text": "#373c44",
    "title": "#2d3138",
    "quiet": "#5c6370",
    "line": "#e1e5ec",
    "link": "#0172ad",
}
_DARK = {
    "page": "#13171f",
    "card": "#181c25",
    "text": "#c2c7d0",
    "title": "#f0f1f3",
    "quiet": "#a0a8b8",
    "line": "#2a3140",
    "link": "#01aaff",
}
"""The colours of the pages (`streams/wire/page_style.py`). Mail programs do not support custom properties."""
_KINDS = ("title", "text", "quiet", "link")
"""The colours of texts."""
_BORDER_SHARE = 0.25
"""How much of a border is the colour of titles, so that a button in the colour of the card has an outline."""


def html_of(
    language: str, subject: str, paragraphs: Sequence[str], *, labels: Mapping[str, str], color: str, fallback: str
) -> str:
    """Return the template of the HTML part of an email.

    `labels` are the texts of the links in it, `color` is the app's, as `#rrggbb`, and `fallback` introduces the URL
    of the button.
    """
    heading, body = _heading(subject, paragraphs)
    button = next((part for part in paragraphs if part in labels), "")
    blocks = "\n".join(_blocks(body, button, labels=labels, color=color, fallback=fallback))
    on_color, border = text_on(color), _mixed(_LIGHT["title"], color)
    return f"""<!doctype html>
<html lang="{escape(language)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<meta name="format-detection" content="telephone=no, date=no, address=no, email=no, url=no">
<title>{escape(subject)}</title>
<style>
{_dark_style(color)}</style>
</head>
<body class="page" style="margin:0;padding:0;background:{_LIGHT["page"]}">
<table role="presentation" class="page" width="100%" cellpadding="0" cellspacing="0" border="0" \
style="background:{_LIGHT["page"]}">
<tr><td align="center" style="padding:24px 12px">
<table role="presentation" width="600" cellpadding="0" cellspacing="0" border="0" \
style="width:100%;max-width:600px">
<tr><td style="padding:0 0 16px">
<table role="presentation" cellpadding="0" cellspacing="0" border="0"><tr>
<td class="accent" aria-hidden="true" width="34" height="34" align="center" bgcolor="{color}" \
style="border:1px solid {border};border-radius:8px;background:{color};color:{on_color};\
font:600 18px/34px {_FONT}">{{{{.Initial}}}}</td>
<td class="title" style="padding-left:12px;color:{_LIGHT["title"]};font:600 18px/24px {_FONT};\
overflow-wrap:anywhere">{{{{.App}}}}</td>
</tr></table>
</td></tr>
<tr><td class="card" style="padding:28px 24px 24px;border:1px solid {_LIGHT["line"]};border-top:4px solid {color};\
border-radius:12px;background:{_LIGHT["card"]};overflow-wrap:anywhere;word-break:break-word">
<h1 class="title" style="margin:0 0 16px;color:{_LIGHT["title"]};font:600 24px/30px {_FONT}">{heading}</h1>
{blocks}
</td></tr>
</table>
</td></tr>
</table>
</body>
</html>
"""


def _heading(subject: str, paragraphs: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the heading as HTML, and the paragraphs below it.

    A subject with a code is no heading, because the code would be shown twice. The first paragraph introduces the
    code.
    """
    if CODE not in subject:
        return escape(subject), paragraphs
    return escape(paragraphs[0].rstrip(": \u00a0")), paragraphs[1:]


def _blocks(
    paragraphs: Sequence[str], button: str, *, labels: Mapping[str, str], color: str, fallback: str
) -> Iterable[str]:
    """Yield the HTML of each paragraph. The link `button` is the button, others are links in the text."""
    for text, following in zip(paragraphs, [*paragraphs[1:], ""], strict=True):
        match text:
            case "{{.Code}}":
                yield _code()
            case "{{.Requested}}":
                yield _paragraph(text, kind="quiet", size="14px/20px")
            case _ if text == button:
                yield _button(text, labels[text], color)
                yield _paragraph(escape(fallback), kind="quiet", size="14px/20px", after="0")
                yield _paragraph(_anchor(text, text), kind="quiet", size="14px/20px")
            case _ if text in labels:
                yield _paragraph(_anchor(text, escape(labels[text])))
            case _:
                yield _paragraph(escape(text), is_apart=following in labels and following != button)


def _paragraph(
    html: str, *, kind: str = "text", size: str = "16px/24px", after: str = "16px", is_apart: bool = False
) -> str:
    """Return a paragraph, whose colour is that of `kind`. `is_apart`: below a line, since another topic begins."""
    look = f"margin:0 0 {after};color:{_LIGHT[kind]};font:400 {size} {_FONT}"
    if is_apart:
        kind = f"{kind} line"
        look += f";margin-top:24px;padding-top:20px;border-top:1px solid {_LIGHT['line']}"
    return f'<p class="{kind}" style="{look}">{html}</p>'


def _anchor(url: str, html: str) -> str:
    return f'<a class="link" href="{url}" target="_blank" style="color:{_LIGHT["link"]}">{html}</a>'


def _code() -> str:
    return (
        f'<p class="title page line" style="margin:0 0 24px;padding:16px 8px 16px 14px;border:1px solid '
        f"{_LIGHT['line']};border-radius:8px;background:{_LIGHT['page']};color:{_LIGHT['title']};"
        f"font:700 32px/40px {_MONO};letter-spacing:6px;text-align:center;"
        f'-webkit-user-select:all;user-select:all">{CODE}</p>'
    )


def _button(url: str, label: str, color: str) -> str:
    border = _mixed(_LIGHT["title"], color)
    return (
        '<table role="presentation" cellpadding="0" cellspacing="0" border="0" style="margin:8px 0 24px"><tr>'
        f'<td class="accent" bgcolor="{color}" style="border:1px solid {border};border-radius:6px;'
        f'background:{color}"><a href="{url}" target="_blank" style="display:inline-block;padding:12px 24px;'
        f'color:{text_on(color)};font:600 16px/20px {_FONT};text-decoration:none">{escape(label)}</a></td>'
        "</tr></table>"
    )


def _dark_style(color: str) -> str:
    """Return the rules of the dark scheme. They must be `!important`, because the light ones are inline."""
    border = _mixed(_DARK["title"], color)
    return (
        ":root { color-scheme: light dark; supported-color-schemes: light dark; }\n"
        "@media (prefers-color-scheme: dark) {\n"
        f".page {{ background: {_DARK['page']} !important; }}\n"
        f".card {{ background: {_DARK['card']} !important; border-color: {color} {_DARK['line']} {_DARK['line']} "
        "!important; }\n"
        f".line {{ border-color: {_DARK['line']} !important; }}\n"
        f".accent {{ border-color: {border} !important; }}\n"
        + "".join(f".{kind} {{ color: {_DARK[kind]} !important; }}\n" for kind in _KINDS)
        + "}\n"
    )


def _mixed(title: str, color: str) -> str:
    """Return the colour of a border around `color`, which a scheme with titles of the colour `title` shows."""
    mixed = (
        round(int(title[at : at + 2], 16) * _BORDER_SHARE + int(color[at : at + 2], 16) * (1 - _BORDER_SHARE))
        for at in (1, 3, 5)
    )
    return "#" + "".join(f"{channel:02x}" for channel in mixed)
