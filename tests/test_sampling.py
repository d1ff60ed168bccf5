"""All runs include each member of both lists of `paired`, however long they are."""

import pytest

from tests.sampling import paired


@pytest.mark.parametrize(("cases", "others"), [(1, 1), (2, 2), (3, 2), (7, 3), (10, 11), (2, 5), (1, 4)])
def test_all_runs_include_each_member_of_both_lists(cases: int, others: int):
    numbers, letters = [*range(cases)], list("abcdefghijk"[:others])

    pairs = paired(numbers, letters)

    always = [pair.values for pair in pairs if not pair.marks]
    assert len(pairs) == len({pair.values for pair in pairs}) == cases * others
    assert [*dict.fromkeys(number for number, _ in always)] == numbers
    assert sorted({letter for _, letter in always}) == letters
    assert len(always) == max(cases, others)
