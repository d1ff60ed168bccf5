"""Rules that linters do not check: lengths, and which modules create tasks, JSON, error types and responses."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from storage.postgres.migrate import MIGRATIONS
from tests.calendar.clock_reads import SQL_CLOCK, reads_clock, texts
from tests.code.source_files import FILES, PACKAGES, ROOT, name, nodes
from tests.code.timed_tests import TIMED_SLEEPS, TIMED_WAITS

pytestmark = pytest.mark.xdist_group("architecture")  # One worker parses all files.

OTHER_FILES = sorted(
    path for folder in ("tests", "bench", "deploy", "clients/python") for path in (ROOT / folder).rglob("*.py")
)

FILE_LINES = 400
FUNCTION_LINES = 80
TASK_MAKERS = {
    "streams/tasks.py",
    "actors/runtime/supervisor.py",
    "app/process/parent.py",  # The parent of the serving processes has one task group and no streams.
}
JSON_MAKERS = {"streams/wire/codec.py", "streams/wire/damaged.py", "streams/wire/long_integers.py"}
OTHER_PROTOCOLS = ("vendors/local/", "vendors/sandbox/")
"""Packages of separate processes, which use the formats of vendors."""

REAL_TIME = {
    "actors/runtime/actor.py": "events carry the real time at which they were sent",
    "actors/runtime/context.py": "events carry the real time at which they were sent",
    "actors/runtime/remote_log.py": "events carry the real time at which they were sent",
    "actors/plays/takeover.py": "the time since a stream began on another machine belongs to no app",
    "app/platforms/paypal.py": "the platform dates its webhooks by real time",
    "app/accounts/proofs/third_party.py": "platforms date their proofs by real time",
    "app/http/callers/tokens.py": "signatures and server tokens carry the time of the machine that makes them",
    "app/dev/clock.py": "an app's clock is set relative to real time",
    "app/admin/money/costs.py": "hours of streams are those of the machine, whose time is in their ids",
    "app/admin/streams/ended.py": "streams are chosen by the time in their ids, which is that of the machine",
    "app/admin/overview.py": "the overview is that of the deployment, and belongs to no app",
    "app/observing/stored_figures.py": "the overview is that of the deployment, and belongs to no app",
    "app/doctor/postgres.py": "it compares the clocks of machines",
    "app/doctor/surroundings.py": "it compares the clocks of machines",
    "app/http/callers/auth.py": "signatures carry the time of the machine that makes them",
    "app/http/callers/server_tokens.py": "server tokens carry the time of the machine that makes them",
    "app/commands/operators.py": "operators belong to no app",
    "app/dev/console.py": "operators belong to no app",
    "app/mail/sending.py": "mails are dated by the time of the machine that sends them",
    "app/payments/cards/webhooks.py": "the platform signs with real time",
    "app/payments/cards/reversals.py": "it orders what was read, even if the clock of the app is moved back",
    "app/predictions/awaited.py": "the host dates what it is asked for by real time",
    "app/predictions/following.py": "the host dates what it is asked for by real time",
    "app/predictions/webhooks.py": "the host signs with real time",
    "app/observing/logs.py": "log lines are about the process",
    "app/observing/spans.py": "traces are about the process",
    "app/work/job_attempts.py": "the wait before a retry is a fact about the job",
    "storage/clock.py": "it makes an app's time from real time",
    "storage/events/queue.py": "sinks get events by real time, whatever the time of the app is",
    "storage/jobs/idempotency.py": "clients repeat requests by real time",
    "storage/jobs/jobs.py": "procrastinate runs jobs by real time",
    "storage/jobs/failures.py": "procrastinate runs jobs by real time",
    "storage/jobs/held.py": "procrastinate runs jobs by real time",
    "storage/jobs/schedules.py": "workers enqueue jobs by real time",
    "app/admin/jobs.py": "workers enqueue jobs by real time",
    "storage/payments/mismatches.py": "an operator's changes are dated by real time",
    "storage/postgres/migrations/0077_job_failures.sql": "procrastinate runs jobs by real time",
    "storage/postgres/migrate.py": "migrations belong to no app",
    "app/work/partitions.py": "a partition has rows of all apps",
    "storage/userdata/retention.py": "a partition has rows of all apps",
    "storage/postgres/migrations/0071_bounds_of_first_partitions.sql": "a partition has rows of all apps",
    "storage/postgres/migrations/0011_operators.sql": "operators and the audit log belong to no app",
    "storage/postgres/migrations/0045_operator_sessions.sql": "operators belong to no app",
    "storage/postgres/notifications.py": "what was announced since a read is a question of real time",
    "storage/operators/console_sessions.py": "operators belong to no app",
    "storage/operators/operators.py": "operators belong to no app",
    "storage/objects/folder.py": "the times of files are those of the file system",
    "storage/objects/links.py": "links belong to no app",
    "storage/processes/processes.py": "heartbeats are about processes",
    "storage/accounts/sessions.py": "what was announced since a read is a question of real time",
    "storage/jobs/stalled_jobs.py": "heartbeats are about processes",
    "storage/jobs/waiting.py": "procrastinate runs jobs by real time",
    "storage/postgres/migrations/0001_configs.sql": "an operator's changes are dated by real time",
    "storage/postgres/migrations/0003_conversations.sql": "the defaults are not used",
    "storage/postgres/migrations/0004_attempts.sql": "the default is not used",
    "storage/postgres/migrations/0008_processes.sql": "heartbeats are about processes",
    "storage/postgres/migrations/0030_reported_events.sql": "sinks get events by real time, not an app's",
    "storage/postgres/migrations/0035_leaderboards.sql": "it makes an app's time of it, after the lock of a board",
    "storage/postgres/migrations/0014_idempotency_keys.sql": "clients repeat requests by real time",
    "streams/sse.py": "events carry the real time at which they were sent",
    "streams/wire/codec.py": "it defines the time of events",
    "streams/wire/ids.py": "ids sort by the real time of their creation",
    "app/process/figures.py": "figures belong to a process, and to no app",
    "storage/operators/figures.py": "figures belong to a process, and to no app",
}
"""Files that read real time instead of an app's clock (`storage/clock.py`), and why."""
TIMELESS = "vendors/"
"""Vendors do not know apps."""
SESSION_STATE = re.compile(
    r"\bpg_(try_)?advisory_lock|\bset_config\s*\((?![^()]*,\s*true\s*\))|"
    r"(\A|;)\s*(set\s+(?!local\b)|(un)?listen\b|prepare\b|create\s+temp|discard\b|reset\b)",
    re.IGNORECASE,
)
"""SQL whose effect outlasts its transaction on a connection that is passed to the next caller without a reset."""
OWN_CONNECTION = {"storage/postgres/migrate.py"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each function with its number of lines, without decorators and docstring."""
    for node in nodes(path):
        if isinstance(node, Function) and node.end_lineno is not None:
            lines = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node) is not None:
                docstring = node.body[0]
                lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
            yield f"{name(path)}:{node.lineno} {node.name}", lines


def percentile(numbers: list[int], percent: int) -> int:
    return sorted(numbers)[min(len(numbers) - 1, len(numbers) * percent // 100)]


def test_tests_of_a_group_share_a_worker(request: pytest.FixtureRequest):
    """xdist reads the group from the end of a test's id."""
    if getattr(request.config.option, "loadgroup", False):
        assert request.node.nodeid.endswith("@architecture")


def test_source_files_are_found():
    assert {path.relative_to(ROOT).parts[0] for path in FILES} == set(PACKAGES)


def test_no_file_is_too_long():
    lengths = {name(path): len(path.read_text().splitlines()) for path in FILES}
    others = {name(path): len(path.read_text().splitlines()) for path in OTHER_FILES}

    assert {file: lines for file, lines in (lengths | others).items() if lines > FILE_LINES} == {}
    written = [lines for lines in lengths.values() if lines]
    assert percentile(written, 50) <= 120
    assert percentile(written, 90) <= 250


def test_no_function_is_too_long():
    lengths = dict(function for path in FILES for function in functions(path))

    assert {function: lines for function, lines in lengths.items() if lines > FUNCTION_LINES} == {}
    assert percentile(list(lengths.values()), 90) <= 20
    assert percentile(list(lengths.values()), 99) <= 60


@cache
def names_used(path: Path) -> set[str]:
    used = set()
    for node in nodes(path):
        match node:
            case ast.Attribute(attr=used_name) | ast.Name(id=used_name):
                used.add(used_name)
            case ast.alias(name=used_name):
                used.add(used_name.rpartition(".")[2])
    return used


def test_only_owners_create_tasks():
    makers = {"create_task", "ensure_future", "TaskGroup", "run_coroutine_threadsafe"}

    assert {name(path) for path in FILES if names_used(path) & makers} == TASK_MAKERS


def imports(path: Path) -> Iterator[str]:
    for node in nodes(path):
        match node:
            case ast.Import(names=aliases):
                yield from (alias.name for alias in aliases)
            case ast.ImportFrom(module=str(module)):
                yield module


def test_tests_import_nothing_from_test_modules():
    """Shared code is in modules without tests, so that each test module can be read, moved and run alone."""
    imported = re.compile(r"^\s*(?:from|import) tests\b.*\btest_", re.MULTILINE)
    tests = [path for path in OTHER_FILES if path.is_relative_to(ROOT / "tests")]

    assert [name(path) for path in tests if imported.search(path.read_text())] == []


def calls_of(path: Path, function: str) -> list[ast.Call]:
    """Return the calls of a function by its dotted name."""
    if (
        f"{function}(" not in path.read_text()
    ):  # Most tests need not be parsed, which takes seconds for all of them.
        return []
    calls = [node for node in nodes(path) if isinstance(node, ast.Call)]
    return [call for call in calls if ast.unparse(call.func) == function]


def waits_for_a_time(path: Path) -> bool:
    """Return whether a file uses `asyncio.wait` with a timeout, which looks like a wait for an event."""
    calls = calls_of(path, "asyncio.wait")
    return any(keyword.arg == "timeout" for call in calls for keyword in call.keywords)


def sleeps_for_a_time(path: Path) -> bool:
    """Return whether a file sleeps for longer than one pass of the event loop."""
    calls = [call for function in ("asyncio.sleep", "time.sleep") for call in calls_of(path, function)]
    return any(ast.unparse(call.args[0]) != "0" for call in calls)


def test_tests_wait_for_events_and_not_for_a_time():
    """What a test expects within a fixed time fails on a busy machine, or is not tested there."""
    tests = [path for path in OTHER_FILES if path.is_relative_to(ROOT / "tests")]
    sleeping = {path for paths in TIMED_SLEEPS.values() for path in paths}

    assert {name(path) for path in tests if waits_for_a_time(path)} == TIMED_WAITS.keys()
    assert {name(path) for path in tests if sleeps_for_a_time(path)} == sleeping, "wait for a state, or say why not"


def test_only_the_wire_package_encodes_json():
    makers = {"orjson", "json", "ujson", "simplejson", "msgspec"}

    found = {name(path) for path in FILES if {module.partition(".")[0] for module in imports(path)} & makers}

    assert found == JSON_MAKERS


def test_each_error_type_is_named_once_and_by_a_class():
    files = [path for path in FILES if not name(path).startswith(OTHER_PROTOCOLS)]
    found = [node for path in files for node in nodes(path)]

    named = Counter(
        node.value.value
        for node in found
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        if [getattr(target, "id", "") for target in node.targets] == ["error_type"]
    )
    assert {"internal", "backend unavailable", "redis_service", "all_strategies_failed"} <= named.keys()
    assert [error_type for error_type, count in named.items() if count > 1] == []
    assert not [
        node
        for node in found
        if isinstance(node, ast.keyword) and node.arg == "error_type" and isinstance(node.value, ast.Constant)
    ]


def test_only_the_http_layer_makes_error_responses():
    used = {name(path) for path in FILES if "error_response" in names_used(path)}

    assert used
    assert {path for path in used if not path.startswith("app/http/")} == set()


def reads_real_time(path: Path) -> bool:
    if path.suffix == ".sql":
        return SQL_CLOCK.search(path.read_text()) is not None
    return reads_clock(nodes(path)) or any(map(SQL_CLOCK.search, texts(path)))


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.time()",
        "import time as t; t.time_ns()",
        "from time import time; now = time()",
        "from time import time as now; read(clock=now)",
        "import datetime; datetime.datetime.now(datetime.UTC)",
        "import datetime as dt; dt.date.today()",
        "from datetime import UTC, datetime; datetime.now(UTC)",
        "from streams.wire.codec import now_ms; now_ms()",
    ],
)
def test_each_way_to_read_real_time_is_found(code: str):
    assert reads_clock(list(ast.walk(ast.parse(code))))


@pytest.mark.parametrize("code", ["import time; time.monotonic()", "clock.now(app_id)", "self.time.time()"])
def test_other_clocks_are_not_real_time(code: str):
    assert not reads_clock(list(ast.walk(ast.parse(code))))


def test_only_listed_files_read_real_time():
    migrations = MIGRATIONS.glob("*.sql")

    found = {name(path) for path in (*FILES, *migrations) if reads_real_time(path)}

    assert {file for file in found if not file.startswith(TIMELESS)} == REAL_TIME.keys()


def test_no_statement_leaves_state_on_a_pooled_connection():
    storage = [path for path in FILES if name(path).startswith("storage/")]

    found = {name(path) for path in storage if any(map(SESSION_STATE.search, texts(path)))}

    assert found == OWN_CONNECTION


def test_storage_functions_take_the_connection_then_the_app_then_the_user():
    odd = []
    for path in [path for path in FILES if name(path).startswith("storage/")]:
        for node in nodes(path):
            if not isinstance(node, ast.AsyncFunctionDef):
                continue
            names = [argument.arg for argument in node.args.args]
            if "conn" not in names or "self" in names:
                continue
            allowed = ["conn", "app_id", "uid"] if "app_id" in names else ["conn", *names[1:2]]
            hidden = {"conn", "app_id"} & {argument.arg for argument in node.args.kwonlyargs}
            if hidden or names not in (allowed[:2], allowed[:3], allowed[:1]):
                odd.append(f"{name(path)}:{node.lineno} {node.name}({', '.join(names)})")

    assert odd == []


def test_new_tables_name_users_and_times_alike():
    odd = []
    for path in sorted(MIGRATIONS.glob("*.sql")):
        if path.name < "0011":  # The tables of accounts name times `…_time`; a rename would break older processes.
            continue
        names = re.findall(r"\b\w+(?= timestamptz\b)|\buser_id\b", path.read_text())
        odd += [(path.name, column) for column in names if not column.endswith("_at")]

    assert odd == []
