"""What the pages of the sandbox's payment platforms share: their style, and the buttons of faults."""

from collections.abc import Sequence
from html import escape

from aiohttp import web

_STYLE = """
:root {
  color-scheme: light dark;
  --ink: light-dark(#14213d, #e8ecf5);
  --soft: light-dark(#5b6784, #9aa5bf);
  --card: light-dark(#fff, #1b2233);
  --page: light-dark(#eef1f7, #10141f);
  --line: light-dark(#d5dbe8, #333c52);
}
* { box-sizing: border-box }
body {
  margin: 0; min-height: 100vh; padding: 1rem; display: grid; place-items: center;
  background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif;
}
main {
  width: min(26rem, 100%); padding: 1.5rem;
  background: var(--card); border: 1px solid var(--line); border-radius: 14px;
}
h1 { margin: .75rem 0 0; font-size: 1.1rem }
p { margin: 0; color: var(--soft) }
.amount { color: var(--ink); font-size: 2.2rem; font-weight: 650; font-variant-numeric: tabular-nums }
form { display: grid; gap: .6rem; margin-top: 1.25rem }
button {
  padding: .7rem 1rem; border: 1px solid var(--line); border-radius: 999px;
  background: none; color: inherit; font: inherit; font-weight: 600; cursor: pointer;
}
button:focus-visible { outline: 3px solid #4f8cff; outline-offset: 2px }
button.primary { background: #0b5cff; border-color: #0b5cff; color: #fff }
details { margin-top: 1.25rem; padding-top: 1rem; border-top: 1px solid var(--line) }
summary { color: var(--soft); cursor: pointer }
.faults { grid-template-columns: 1fr 1fr; gap: .5rem; margin-top: .75rem }
.faults button { padding: .5rem .75rem; border-radius: 10px; font-size: .875rem; font-weight: 500 }
"""
Labels = Sequence[tuple[str, str]]
"""Faults, and what their buttons say."""
_OF_ALL: Labels = (
    ("lost", "Lose webhooks"),
    ("duplicate", "Repeat webhooks"),
    ("delayed", "Delay webhooks"),
    ("reordered", "Reverse webhooks"),
    ("decline", "Decline payment"),
)
"""The faults of deliveries, and a decline."""


def fault_buttons(action: str, faults: Labels) -> str:
    """Return a form that does something with a fault: the field `fault` names it."""
    buttons = "".join(
        f'<button name="fault" value="{name}">{escape(label)}</button>' for name, label in (*_OF_ALL, *faults)
    )
    return (
        f"<details><summary>{escape(action.capitalize())}, and let something go wrong</summary>"
        f'<form method="post" class="faults"><input type="hidden" name="action" value="{escape(action)}">'
        f"{buttons}</form></details>"
    )


def page(title: str, content: str, *, platform: str) -> web.Response:
    html = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{escape(title)} - {platform.lower()} sandbox</title><style>{_STYLE}</style>"
        f"<main><p>{platform} sandbox: no money moves</p>{content}</main>"
    )
    return web.Response(text=html, content_type="text/html")
