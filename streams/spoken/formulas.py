r"""Formulas in LaTeX, in characters that voices of all languages read. Does no I/O.

A sentence of prose with `\(\pi r^2\)` is spoken with `πr²`, not with the commands.
"""

import re
from html.entities import html5

_FORMULA = re.compile(
    r"\\\((.+?)\\\)|\\\[(.+?)\\\]|\$\$(.+?)\$\$|(?<![\w$\\])\$(?=\S)([^$]+?)(?<=[^\s\\])\$(?![\w$])"
    r"|(\\begin\{[a-z]+\*?\}.+?\\end\{[a-z]+\*?\})",
    re.DOTALL,
)
_DELIMITER = re.compile(r"\\[()\[\]]|\$\$")
"""A delimiter without its partner: the formula continues in another sentence."""
_PRICES = re.compile(r"[\d.,]+[^\w\s]*\s[^\\^_{}=+<>]*")
"""Text between the dollar signs of two prices, as in `$5, or 6$`."""
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{[^{}]*\}(?:\{[lcr|]*\})?|\\(?:left|right|[Bb]igg?[lr]?)(?![A-Za-z])|&")
_LINE_BREAK = re.compile(r"\s*\\\\\s*")
_LIMITS = re.compile(
    r"\\(int|sum|prod|lim)(?:\\limits)?_(\{[^{}]*\}|\\?\w+?)(?:\^(\{[^{}]*\}|\\[A-Za-z]+|\w))?(?![{}])"
)
_TEXT = re.compile(r"\\(?:text|math|boxed|operatorname|overline|underline|vec|hat|bar|tilde)[a-z]*\s*\{([^{}]*)\}")
_FRACTION = re.compile(r"\\[dtc]?frac\s*(?:\{([^{}]*)\}\s*\{([^{}]*)\}|(\d)(\d))")
_ROOT = re.compile(r"\\sqrt\s*(?:\[([^\]]*)\])?\s*\{([^{}]*)\}")
_POWER = re.compile(r"\^(?:\{([^{}]*)\}|(\\[A-Za-z]+|[^\s{}(]))")
_INDEX = re.compile(r"_(?:\{([^{}]*)\}|(\\[A-Za-z]+|[^\s{}]))")
_COMMAND = re.compile(r"\\([A-Za-z]+)\s*")
_SPACE = re.compile(r"\\[,;:! ]|~")
_LEFT_OVER = re.compile(r"[\\{}]")
_IN_BRACKETS = re.compile(r"(?<=\() | (?=[),])")
_MAX_DEPTH = 8
_RAISED = str.maketrans("0123456789n", "⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ")
_RAISED_ALREADY = ("°", "′")  # noqa: RUF001
_SYMBOLS = {
    "neq": "≠", "cdot": "·", "infty": "∞", "to": "→", "circ": "°", "ldots": "…", "cdots": "…", "dots": "…",
    "quad": " ", "qquad": " ", "sqrt": "√", "leqslant": "≤", "geqslant": "≥", "emptyset": "∅", "varphi": "φ",
    "epsilon": "ε", "varepsilon": "ε", "displaystyle": "", "limits": "", "ne": "≠", "prime": "′",  # noqa: RUF001
    "implies": "⇒", "iff": "⇔", "ell": "l",
}  # fmt: skip
"""Commands that HTML has under another name, or not at all."""


def raised(text: str) -> str:
    """Return an exponent as voices read it: `²`, or `^(a+b)`."""
    if text in _RAISED_ALREADY:
        return text
    if text and not text.strip("0123456789n"):
        return text.translate(_RAISED)
    return text if text in {"st", "nd", "rd", "th"} else f"^{_grouped(text)}"


def find_formulas(text: str) -> list[tuple[int, int, str]]:
    """Return where formulas and their delimiters begin and end, and what is spoken of each."""
    formulas = [match for match in _FORMULA.finditer(text) if not _PRICES.fullmatch(match[4] or "")]
    if formulas:
        return [(*formula.span(), _spoken(formula[formula.lastindex or 0])) for formula in formulas]
    return [(*delimiter.span(), "") for delimiter in _DELIMITER.finditer(text)]


def _spoken(formula: str) -> str:
    text = _LINE_BREAK.sub(", ", _ENVIRONMENT.sub(" ", formula))
    for _ in range(_MAX_DEPTH):
        before = text
        text = _FRACTION.sub(_fraction, _TEXT.sub(r"\1", text))
        text = _ROOT.sub(lambda root: f"{root[1] or ''}√{_grouped(root[2])}", _LIMITS.sub(_limits, text))
        text = _POWER.sub(lambda power: raised(_symbols(power[1] or power[2] or "")), text)
        text = _INDEX.sub(lambda index: _index(_symbols(index[1] or index[2] or "")), text)
        if text == before:
            break
    text = _LEFT_OVER.sub("", _symbols(_SPACE.sub(" ", text)))
    return _IN_BRACKETS.sub("", " ".join(text.split())).strip(", ")


def _symbols(text: str) -> str:
    return _COMMAND.sub(_symbol, text)


def _symbol(command: re.Match[str]) -> str:
    """Return the character of a command, or its name: `sin`, `log`."""
    name = command[1]
    symbol = _SYMBOLS.get(name, html5.get(f"{name};"))
    return f" {name} " if symbol is None else symbol if symbol.isalpha() or name == "circ" else f" {symbol} "


def _fraction(fraction: re.Match[str]) -> str:
    above, below = (fraction[1], fraction[2]) if fraction[3] is None else (fraction[3], fraction[4])
    return f"{_grouped(above)}/{_grouped(below)}"


def _limits(command: re.Match[str]) -> str:
    first, last = command[2].strip("{}"), (command[3] or "").strip("{}")
    return f"\\{command[1]} {first}{' … ' if last else ''}{last}, "


def _index(text: str) -> str:
    return text if text.isdigit() else f" {text} "


def _grouped(text: str) -> str:
    text = text.strip()
    return text if text.lstrip("\\").isalnum() else f"({text})"
