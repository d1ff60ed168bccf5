"""The look of all pages: the logo, colours, sizes, the bar, and the parts that small pages are made of.

The pages of this server and those of the sandbox use the same variables. In both colour schemes, text has a
contrast of at least 4.5 with its background, and the border of a control at least 3.
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

LOGO: Final = """<svg viewBox="0 0 24 24" class="page-logo" aria-hidden="true">\
<rect width="24" height="24" rx="6" fill="#0172ad"/>\
<path d="M7 10v4M12 6v12M17 9v6" stroke="#fff" stroke-width="2.5" stroke-linecap="round"/></svg>"""
"""The logo as an element of a page, whose colours it takes."""

LOGO_FILE: Final = LOGO.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')
"""The logo as a file, which is the icon of the pages."""

ICON_URL: Final = f"data:image/svg+xml,{quote(LOGO_FILE)}"
"""The icon of pages that load nothing."""

LOGO_STYLE: Final = """.page-logo { flex: none; width: 1.75rem; height: 1.75rem; fill: none; }
.page-logo rect { fill: var(--accent); }
.page-logo path { stroke: var(--on-accent); }
"""

VARIABLES: Final = """:root {
  color-scheme: light dark;
  --accent: #0172ad;
  --on-accent: #fff;
  --accent-hover: color-mix(in srgb, #000 10%, var(--accent));
  --accent-line: color-mix(in srgb, var(--title) 25%, var(--accent));
  --danger: #b3261e;
  --on-danger: #fff;
  --page: #f6f7f9;
  --card: #fff;
  --text: #373c44;
  --title: #2d3138;
  --quiet: #5c6370;
  --line: #e1e5ec;
  --field: #7b8495;
  --link: #0172ad;
  --alert: #8a1c13;
  --alert-background: #fdecea;
  --good: #1d6b34;
  --good-background: #e6f4ea;
  --wait: #7a4a00;
  --wait-background: #fdf0d9;
  --json-name: #0b5c8f;
  --json-text: #7a3e00;
  --json-value: #6b2fa0;
  --paper: #fff;
  --backdrop: rgb(0 0 0 / 45%);
  --font: system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif;
  --mono: ui-monospace, Menlo, Consolas, monospace;
  --size-xs: .75rem;
  --size-s: .875rem;
  --size-m: 1rem;
  --size-l: 1.125rem;
  --size-xl: 1.5rem;
  --size-xxl: 2.25rem;
  --card-radius: .75rem;
  --card-padding: 2rem;
  --radius: .375rem;
  --space-1: .25rem;
  --space-2: .5rem;
  --space-3: .75rem;
  --space-4: 1rem;
  --space-6: 1.5rem;
  --space-8: 2rem;
  --bar-height: 3.5rem;
  --tint: color-mix(in srgb, var(--accent) 12%, var(--card));
  --shadow: 0 .5rem 2rem rgb(15 23 42 / 10%);
  --motion: 120ms;
}
@media (prefers-reduced-motion: reduce) { :root { --motion: 0s; } }
@media (prefers-color-scheme: dark) {
  :root {
    --danger: #c4362c;
    --page: #13171f;
    --card: #181c25;
    --text: #c2c7d0;
    --title: #f0f1f3;
    --quiet: #a0a8b8;
    --line: #2a3140;
    --field: #6b7589;
    --link: #01aaff;
    --alert: #ffb4ab;
    --alert-background: #3a1613;
    --good: #7fd89b;
    --good-background: #12301d;
    --wait: #f0c070;
    --wait-background: #33270f;
    --json-name: #7cc4f0;
    --json-text: #f0b27c;
    --json-value: #cfa6f5;
  }
}
"""
"""Custom properties of CSS. A page may set `--accent` and `--on-accent` after them."""

_COLOR = re.compile(r"--([\w-]+): #(\w+);")


def _colors(rules: str) -> dict[str, str]:
    return {
        name: f"#{digits if len(digits) == 6 else ''.join(2 * digit for digit in digits)}"
        for name, digits in _COLOR.findall(rules)
    }


_ALWAYS, _, _IF_DARK = VARIABLES.partition("@media (prefers-color-scheme: dark)")
LIGHT: Final[Mapping[str, str]] = _colors(_ALWAYS)
DARK: Final[Mapping[str, str]] = {**LIGHT, **_colors(_IF_DARK)}
"""The colours of both schemes as `#rrggbb`, by the names of their variables, for documents without variables."""

PARTS: Final = """* { box-sizing: border-box; }
html { font: var(--size-m)/1.5 var(--font); color: var(--text); background: var(--page); overflow-wrap: anywhere; }
body { margin: 0; }
h1, h2, h3 { margin: 0; line-height: 1.25; color: var(--title); }
h1 { font-size: var(--size-xl); }
h2 { font-size: var(--size-l); }
h3 { font-size: var(--size-s); }
a { color: var(--link); text-underline-offset: .1em; }
code { font: .9375em var(--mono); }
summary { width: fit-content; cursor: pointer; }
button, .button { min-height: 2.75rem; padding: .5rem 1rem; border: 1px solid var(--accent-line);
  border-radius: var(--radius); background: var(--accent); color: var(--on-accent); font: inherit; font-weight: 600;
  cursor: pointer; }
.button { display: inline-flex; align-items: center; text-decoration: none; }
button:hover, .button:hover { background: var(--accent-hover); }
button.quiet, .button.quiet { border-color: var(--field); background: none; color: var(--title); font-weight: 500; }
button.quiet:hover, .button.quiet:hover { background: var(--tint); }
button.small, .button.small { min-height: 2rem; padding: 0 var(--space-3); font-size: var(--size-s); }
button.danger { border-color: color-mix(in srgb, var(--title) 25%, var(--danger)); background: var(--danger);
  color: var(--on-danger); }
button.danger:hover { background: color-mix(in srgb, #000 15%, var(--danger)); }
button:disabled, button[aria-disabled="true"] { opacity: .5; cursor: not-allowed; }
label { display: block; font-size: var(--size-s); font-weight: 600; }
input, select, textarea { display: block; width: 100%; min-width: 0; margin-top: .25rem; padding: .5rem .75rem;
  border: 1px solid var(--field); border-radius: var(--radius); background: var(--card); color: inherit;
  font: inherit; font-size: var(--size-m); font-weight: 400; }
select { height: calc(1.5em + 1rem + 2px); }
input:read-only { border-color: var(--line); background: var(--page); color: var(--quiet); }
:is(input, select, textarea)[aria-invalid] { border-color: var(--alert); }
input:is([type="checkbox"], [type="radio"]) { flex: none; width: 1.25rem; height: 1.25rem; margin: 0;
  accent-color: var(--accent); }
::placeholder { color: var(--quiet); opacity: 1; }
:focus-visible { outline: 2px solid var(--title); outline-offset: 2px; }
.unseen { position: absolute; width: 1px; height: 1px; margin: 0; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap; }
.error { margin: .5rem 0 0; padding: .5rem .75rem; border-left: 4px solid var(--alert);
  border-radius: var(--radius); background: var(--alert-background); color: var(--alert);
  font-size: var(--size-s); }
.card { display: grid; min-height: 100vh; min-height: 100dvh; padding: 1rem; align-content: center;
  justify-items: center; }
.card main { width: 100%; max-width: 26rem; padding: var(--card-padding); border: 1px solid var(--line);
  border-radius: var(--card-radius); background: var(--card); box-shadow: var(--shadow); }
.card main > header { display: flex; align-items: center; gap: .75rem; margin-bottom: 1.5rem;
  font-size: var(--size-l); font-weight: 600; color: var(--title); }
.card main > header span { display: grid; place-items: center; flex: none; width: 2.25rem; height: 2.25rem;
  border-radius: .5rem; background: var(--accent); color: var(--on-accent);
  border: 1px solid var(--accent-line); }
.card main > header small { font-size: var(--size-xs); font-weight: 400; color: var(--quiet); }
.card :is(p, ul) { margin: .75rem 0 0; }
.card ul { padding-left: 1.25rem; }
.card li { margin-top: .25rem; }
.card form { display: grid; gap: .75rem; margin-top: 1.5rem; }
.card main > nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin-top: 1.25rem; }
@media (max-width: 30rem) { :root { --card-padding: 1.5rem; } }
"""
"""Rules for headings, links, buttons, fields, and a card in the middle of the page (`class="card"` of the body)."""

BAR: Final = (
    LOGO_STYLE
    + """.page-bar { box-sizing: border-box; position: sticky; top: 0; z-index: 2; display: flex;
  align-items: center; gap: var(--space-4); height: var(--bar-height); padding: 0 var(--space-4);
  border-bottom: 1px solid var(--line); background: var(--card); font-size: var(--size-m); line-height: 1.5; }
.page-links { display: contents; }
.page-name { display: flex; align-items: center; gap: var(--space-2); color: var(--title); font-weight: 600;
  text-decoration: none; white-space: nowrap; }
.page-name small { color: var(--quiet); font-size: var(--size-s); font-weight: 400; }
.page-menu { display: none; }
.page-bar nav { position: static; display: flex; flex: 0 1 auto; gap: .125rem; width: auto; height: auto; margin: 0;
  padding: 0; border: 0; overflow: visible; background: none; color: inherit; }
.page-bar nav a { padding: .25rem .625rem; border-radius: var(--radius); color: var(--text);
  font-size: var(--size-s); font-weight: 500; text-decoration: none; white-space: nowrap; }
.page-bar nav a:hover { background: var(--page); color: var(--title); }
.page-bar nav a[aria-current] { background: var(--tint); color: var(--title); }
.page-tools { display: flex; align-items: center; gap: var(--space-2); min-width: 0; margin-inline-start: auto; }
.page-tools > a { font-size: var(--size-s); white-space: nowrap; }
.page-tools > a:not(:hover) { text-decoration: none; }
@media (max-width: 75rem) {
  .page-bar { gap: var(--space-2); }
  .page-menu { display: inline-flex; align-items: center; gap: var(--space-2); min-height: 2.5rem;
    padding: 0 var(--space-2); border: 1px solid transparent; border-radius: var(--radius); background: none;
    color: var(--text); font: inherit; font-size: var(--size-s); font-weight: 500; white-space: nowrap;
    cursor: pointer; }
  .page-menu:hover, .page-menu[aria-expanded="true"] { background: var(--tint); color: var(--title); }
  .page-menu::after { content: ""; width: .375rem; height: .375rem; border: solid currentColor;
    border-width: 0 2px 2px 0; transform: translateY(-25%) rotate(45deg); }
  .page-bar nav:not(:popover-open) { display: none; }
  .page-bar nav:popover-open { position: fixed; inset: calc(var(--bar-height) - .25rem) auto auto var(--space-2);
    display: grid; width: min(16rem, calc(100vw - 1rem)); padding: var(--space-2); border: 1px solid var(--line);
    border-radius: var(--card-radius); background: var(--card); box-shadow: var(--shadow); }
  .page-bar nav a { display: flex; align-items: center; min-height: 2.75rem; padding: 0 var(--space-3);
    font-size: var(--size-m); }
}
@media (max-width: 40rem) {
  .page-bar { padding: 0 var(--space-2) 0 var(--space-3); }
  .page-tools > a { padding-inline-end: var(--space-2); }
}
"""
)
"""Rules for the logo, and for the bar at the top of a page (`app/page_bar.py`)."""
