"""The HTML of the built-in emails: one card in the app's colour, with a code or a button.

Mail programs ignore much of CSS (https://www.caniemail.com), so the layout consists of tables, and its rules are
inline. Only the colours of the dark scheme are in a style sheet. Programs that ignore it show the light scheme. An
email loads nothing, and has no scripts. Its colours are written out, because mail programs do not support custom
properties.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from app.http.html import legible, mixed, text_on
from streams.wire.page_style import DARK, LIGHT

CODE, LINK, NOT_ME, REQUESTED = "{{.Code}}", "{{.Link}}", "{{.NotMeLink}}", "{{.Requested}}"
"""The paragraphs that are more than text."""
_FONT = "system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
_MONO = "ui-monospace,Menlo,Consolas,monospace"
_KINDS = ("title", "text", "quiet", "link")
"""The colours of texts."""
_ACCENT, _ON_ACCENT, _ACCENT_LINE = "accent", "on-accent", "accent-line"
"""The colours of a button: its background, its text and its border."""
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
    colors = _colors(LIGHT, color)
    blocks = "\n".join(_blocks(body, button, labels=labels, colors=colors, fallback=fallback))
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
{_dark_style(_colors(DARK, color))}</style>
</head>
<body class="page" style="margin:0;padding:0;background:{colors["page"]}">
<table role="presentation" class="page" width="100%" cellpadding="0" cellspacing="0" border="0" \
style="background:{colors["page"]}">
<tr><td align="center" style="padding:24px 12px">
<table role="presentation" width="600" cellpadding="0" cellspacing="0" border="0" \
style="width:100%;max-width:600px">
<tr><td style="padding:0 0 16px">
<table role="presentation" cellpadding="0" cellspacing="0" border="0"><tr>
<td class="accent" aria-hidden="true" width="34" height="34" align="center" bgcolor="{color}" \
style="border:1px solid {colors[_ACCENT_LINE]};border-radius:8px;background:{color};color:{colors[_ON_ACCENT]};\
font:600 18px/34px {_FONT}">{{{{.Initial}}}}</td>
<td class="title" style="padding-left:12px;color:{colors["title"]};font:600 18px/24px {_FONT};\
overflow-wrap:anywhere">{{{{.App}}}}</td>
</tr></table>
</td></tr>
<tr><td class="card" style="padding:28px 24px 24px;border:1px solid {colors["line"]};border-top:4px solid {color};\
border-radius:12px;background:{colors["card"]};overflow-wrap:anywhere;word-break:break-word">
<h1 class="title" style="margin:0 0 16px;color:{colors["title"]};font:600 24px/30px {_FONT}">{heading}</h1>
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
    paragraphs: Sequence[str], button: str, *, labels: Mapping[str, str], colors: Mapping[str, str], fallback: str
) -> Iterable[str]:
    """Yield the HTML of each paragraph. The link `button` is the button, others are links in the text."""
    for text, following in zip(paragraphs, [*paragraphs[1:], ""], strict=True):
        match text:
            case "{{.Code}}":
                yield _code(colors)
            case "{{.Requested}}":
                yield _paragraph(text, colors, kind="quiet", size="14px/20px")
            case _ if text == button:
                yield _button(text, labels[text], colors)
                yield _paragraph(escape(fallback), colors, kind="quiet", size="14px/20px", after="0")
                yield _paragraph(_anchor(text, text, colors), colors, kind="quiet", size="14px/20px")
            case _ if text in labels:
                yield _paragraph(_anchor(text, escape(labels[text]), colors), colors)
            case _:
                yield _paragraph(escape(text), colors, is_apart=following in labels and following != button)


def _paragraph(
    html: str,
    colors: Mapping[str, str],
    *,
    kind: str = "text",
    size: str = "16px/24px",
    after: str = "16px",
    is_apart: bool = False,
) -> str:
    """Return a paragraph, whose colour is that of `kind`. `is_apart`: below a line, since another topic begins."""
    look = f"margin:0 0 {after};color:{colors[kind]};font:400 {size} {_FONT}"
    if is_apart:
        kind = f"{kind} line"
        look += f";margin-top:24px;padding-top:20px;border-top:1px solid {colors['line']}"
    return f'<p class="{kind}" style="{look}">{html}</p>'


def _anchor(url: str, html: str, colors: Mapping[str, str]) -> str:
    return f'<a class="link" href="{url}" target="_blank" style="color:{colors["link"]}">{html}</a>'


def _code(colors: Mapping[str, str]) -> str:
    return (
        f'<p class="title page line" style="margin:0 0 24px;padding:16px 8px 16px 14px;border:1px solid '
        f"{colors['line']};border-radius:8px;background:{colors['page']};color:{colors['title']};"
        f"font:700 32px/40px {_MONO};letter-spacing:6px;text-align:center;"
        f'-webkit-user-select:all;user-select:all">{CODE}</p>'
    )


def _button(url: str, label: str, colors: Mapping[str, str]) -> str:
    color = colors[_ACCENT]
    return (
        '<table role="presentation" cellpadding="0" cellspacing="0" border="0" style="margin:8px 0 24px"><tr>'
        f'<td class="accent" bgcolor="{color}" style="border:1px solid {colors[_ACCENT_LINE]};border-radius:6px;'
        f'background:{color}"><a href="{url}" target="_blank" style="display:inline-block;padding:12px 24px;'
        f'color:{colors[_ON_ACCENT]};font:600 16px/20px {_FONT};text-decoration:none">{escape(label)}</a></td>'
        "</tr></table>"
    )


def _dark_style(colors: Mapping[str, str]) -> str:
    """Return the rules of the dark scheme. They must be `!important`, because the light ones are inline."""
    return (
        ":root { color-scheme: light dark; supported-color-schemes: light dark; }\n"
        "@media (prefers-color-scheme: dark) {\n"
        f".page {{ background: {colors['page']} !important; }}\n"
        f".card {{ background: {colors['card']} !important; "
        f"border-color: {colors[_ACCENT]} {colors['line']} {colors['line']} !important; }}\n"
        f".line {{ border-color: {colors['line']} !important; }}\n"
        f".accent {{ border-color: {colors[_ACCENT_LINE]} !important; }}\n"
        + "".join(f".{kind} {{ color: {colors[kind]} !important; }}\n" for kind in _KINDS)
        + "}\n"
    )


def _colors(scheme: Mapping[str, str], color: str) -> Mapping[str, str]:
    """Return the colours of an email in the colour of an app: those of the pages, except for buttons and links."""
    return {
        **scheme,
        _ACCENT: color,
        _ON_ACCENT: text_on(color),
        _ACCENT_LINE: mixed(scheme["title"], color, share=_BORDER_SHARE),
        "link": legible(color, scheme),
    }
