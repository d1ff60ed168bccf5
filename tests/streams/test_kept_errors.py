"""Errors that are raised more than once refer to nothing that raised or handled them."""

import pytest

from streams.kept_errors import copy_of, stripped
from streams.wire.errors import ConfigInvalid
from tests.garbage import collected_by_hand, garbage


def raised_for(cause: str) -> ConfigInvalid:
    with pytest.raises(ConfigInvalid) as caught:
        raise ConfigInvalid("voice is unknown", extra={"field": "voice"}) from ValueError(cause)
    return caught.value


def test_a_stripped_error_has_no_traceback_and_no_causes() -> None:
    error = stripped(raised_for("no such voice"))
    assert (error.__traceback__, error.__cause__, error.__context__) == (None, None, None)
    assert str(error) == "config_invalid: voice is unknown"


def test_the_causes_of_a_stripped_error_leave_no_reference_cycle() -> None:
    def refer_to_itself() -> None:
        itself = ValueError("no such voice")
        raise itself

    with collected_by_hand():
        try:
            try:
                refer_to_itself()
            except ValueError as cause:
                raise ConfigInvalid("voice is unknown") from cause
        except ConfigInvalid as error:
            stripped(error)
        assert [found for found in garbage() if isinstance(found, Exception)] == []


def test_a_copy_is_the_same_error_whose_raise_leaves_the_kept_one_as_it_is() -> None:
    kept = ConfigInvalid("voice is unknown", extra={"field": "voice"}, retry_after_s=5)
    with pytest.raises(ConfigInvalid, match="config_invalid: voice is unknown") as caught:
        raise copy_of(kept)
    caught.value.extra["attempts"] = []
    caught.value.prefix("speech.json")
    assert (kept.__traceback__, kept.extra, kept.what) == (None, {"field": "voice"}, "voice is unknown")
    assert caught.value.retry_after_s == 5


def test_a_copy_names_the_causes_of_the_kept_error() -> None:
    kept = raised_for("no such voice")
    assert copy_of(kept).__cause__ is kept.__cause__
    assert str(copy_of(OSError(111, "refused"))) == "[Errno 111] refused"
