"""The direction of a list that is paged by its keys."""


def directed(statement: str, *, oldest_first: bool) -> str:
    """Fill `{compare}` and `{order}` of a statement: pages begin with the newest row, or with the oldest.

    `{compare}` stands between the keys of a row and those of the last row of the page before it.
    """
    compare, order = (">", "asc") if oldest_first else ("<", "desc")
    return statement.format(compare=compare, order=order)
