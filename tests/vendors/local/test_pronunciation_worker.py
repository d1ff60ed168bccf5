"""Processes that work for this one: they are late, they die, they fail, and nobody may wait for them any more."""

import os
from collections.abc import Iterator

import pytest

from tests.vendors.local.worker_processes import obey, refuse
from vendors.local.worker import Worker, WorkerFailed, WorkerLate, WorkerLost


def wanted() -> bool:
    return True


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker(obey, name="obedient")
    yield made
    made.stop()


def test_one_process_answers_one_question_after_the_other(worker: Worker) -> None:
    assert worker.pid is None
    first, pid = worker.call("one", limit_s=30, is_wanted=wanted)
    assert (first, pid) == ("one", worker.pid)
    assert worker.call("two", limit_s=30, is_wanted=wanted) == ("two", pid)


def test_what_goes_wrong_is_told_and_the_process_lives_on(worker: Worker) -> None:
    _, pid = worker.call("one", limit_s=30, is_wanted=wanted)
    with pytest.raises(WorkerFailed, match="it went wrong"):
        worker.call("fail", limit_s=30, is_wanted=wanted)
    assert worker.call("two", limit_s=30, is_wanted=wanted) == ("two", pid)


def test_a_process_that_is_late_is_ended(worker: Worker) -> None:
    _, pid = worker.call("one", limit_s=30, is_wanted=wanted)
    with pytest.raises(WorkerLate):
        worker.call("hang", limit_s=0.2, is_wanted=wanted)
    assert not _runs(pid)
    assert worker.call("two", limit_s=30, is_wanted=wanted)[1] != pid


def test_a_process_that_works_for_nobody_is_ended(worker: Worker) -> None:
    _, pid = worker.call("one", limit_s=30, is_wanted=wanted)
    assert worker.call("hang", limit_s=30, is_wanted=lambda: False) is None
    assert not _runs(pid)
    assert worker.call("two", limit_s=30, is_wanted=wanted)[0] == "two"


def test_a_question_is_asked_again_when_the_process_died(worker: Worker, tmp_path) -> None:
    order = f"die once {tmp_path / 'died'}"
    assert worker.call(order, limit_s=30, is_wanted=wanted)[0] == order


def test_a_question_that_kills_every_process_is_given_up(worker: Worker) -> None:
    with pytest.raises(WorkerLost):
        worker.call("die", limit_s=30, is_wanted=wanted)
    assert worker.call("two", limit_s=30, is_wanted=wanted)[0] == "two"


def test_a_process_that_cannot_begin_says_why() -> None:
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
