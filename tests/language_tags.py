"""Language tags for property tests."""

from hypothesis import strategies as st

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"


def _subtag(alphabet: str, least: int, most: int) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=least, max_size=most)


_VARIANT = _subtag(_LETTERS + _DIGITS, 5, 8)
_EXTENSION = st.builds("-".join, st.tuples(st.sampled_from("atu0"), _subtag(_LETTERS + _DIGITS, 2, 8)))
_PRIVATE_USE = st.builds("x-{}".format, _subtag(_LETTERS + _DIGITS, 1, 8))
WELL_FORMED = st.builds(
    lambda parts, separator, change: change(separator.join(filter(None, parts)).replace("-", separator)),
    st.tuples(
        _subtag(_LETTERS, 2, 3),
        st.one_of(st.just(""), _subtag(_LETTERS, 3, 3)),
        st.one_of(st.just(""), st.sampled_from(["hans", "latn"]), _subtag(_LETTERS, 4, 4)),
        st.one_of(st.just(""), _subtag(_LETTERS, 2, 2), _subtag(_DIGITS, 3, 3)),
        st.one_of(st.just(""), _VARIANT),
        st.one_of(st.just(""), _EXTENSION),
        st.one_of(st.just(""), _PRIVATE_USE),
    ),
    st.sampled_from("-_"),
    st.sampled_from([str, str.upper, str.title]),
)
"""Tags by the grammar of RFC 5646, section 2.1."""
