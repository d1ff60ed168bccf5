"""Worker processes that time out, die, fail, or whose result is no longer wanted."""

import os
from collections.abc import Iterator

import pytest

from tests.vendors.local.worker_processes import answer_requests, refuse
from vendors.local.engines.worker import Worker, WorkerFailed, WorkerLate, WorkerLost


def wanted() -> bool:
    return True


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker(answer_requests, name="obedient")
    yield made
    made.stop()


def test_one_process_answers_requests_sequentially(worker: Worker) -> None:
    assert worker.pid is None
    first, pid = worker.call("one", limit_s=30, is_wanted=wanted)
    assert (first, pid) == ("one", worker.pid)
    assert worker.call("two", limit_s=30, is_wanted=wanted) == ("two", pid)


def test_an_error_is_reported_and_the_process_continues(worker: Worker) -> None:
    _, pid = worker.call("one", limit_s=30, is_wanted=wanted)
    with pytest.raises(WorkerFailed, match="it went wrong"):
        worker.call("fail", limit_s=30, is_wanted=wanted)
    assert worker.call("two", limit_s=30, is_wanted=wanted) == ("two", pid)


def test_a_process_that_times_out_is_killed(worker: Worker) -> None:
    _, pid = worker.call("one", limit_s=30, is_wanted=wanted)
    with pytest.raises(WorkerLate):
        worker.call("hang", limit_s=0.2, is_wanted=wanted)
    assert not _runs(pid)
    assert worker.call("two", limit_s=30, is_wanted=wanted)[1] != pid


def test_a_process_whose_result_is_not_wanted_is_ended(worker: Worker) -> None:
    _, pid = worker.call("one", limit_s=30, is_wanted=wanted)
    assert worker.call("hang", limit_s=30, is_wanted=lambda: False) is None
    assert not _runs(pid)
    assert worker.call("two", limit_s=30, is_wanted=wanted)[0] == "two"


def test_a_request_is_repeated_if_the_process_died(worker: Worker, tmp_path) -> None:
    order = f"die once {tmp_path / 'died'}"
    assert worker.call(order, limit_s=30, is_wanted=wanted)[0] == order


def test_a_request_that_kills_every_process_fails(worker: Worker) -> None:
    with pytest.raises(WorkerLost):
        worker.call("die", limit_s=30, is_wanted=wanted)
    assert worker.call("two", limit_s=30, is_wanted=wanted)[0] == "two"


def test_error_of_a_process_that_cannot_start_has_the_cause() -> None:
    worker = Worker(refuse, name="unwilling")
    with pytest.raises(WorkerFailed, match="a library is missing"):
        worker.call("one", limit_s=30, is_wanted=wanted)
    assert worker.pid is None


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
