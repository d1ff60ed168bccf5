"""The end of a stream depends on the status that its record has in the end."""

from typing import get_args

import pytest

from actors.plays.records import lost_turn
from storage.conversations.conversations import RecordStatus

STATUSES = get_args(RecordStatus)
ERROR_OF = {None: "item_not_found", "running": "invalid_operation", "incomplete": "invalid_operation"}
KEPT = {None: False, "running": False, "failed": False, "incomplete": True}


@pytest.mark.parametrize("requested", [status for status in STATUSES if status != "running"])
@pytest.mark.parametrize("found", [None, *STATUSES])
def test_a_stream_ends_normally_only_if_its_answer_is_stored(
    requested: RecordStatus, found: RecordStatus | None
) -> None:
    error = lost_turn(requested, found)
    if requested in {"incomplete", "failed"}:
        assert error is None, "the stream has its own error"
    elif found in {"complete", "interrupted"}:
        assert error is None
    else:
        assert error is not None
        assert error.error_type == ERROR_OF.get(found, "invalid_operation")
        assert ("was not stored" in str(error)) is not KEPT[found]
