"""Tests read the time from one module, those that dates influence are found, and no certificate ends soon."""

import ast
import re
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from app.services import Services
from tests.calendar.calendar_tests import ALWAYS, CALLS, DATES, NEVER, dated, definitions, depends_on_date
from tests.calendar.clock import epoch_s, utc_now
from tests.calendar.clock_reads import reads_clock
from tests.calendar.dates import INSTANTS
from tests.code.source_files import PACKAGES, ROOT, name, nodes
from tests.running.servers import Databases

CLOCK = "tests/calendar/clock.py"
OWN = (CLOCK, *(f"tests/calendar/{file}.py" for file in ("calendar_tests", "clock_reads", "dates")))
OTHER_READS = {"tests/streams/wire/test_codec.py": "it tests the clock of events"}
KNOWN = {
    "tests/app/callers.py _DUE": "only the time that passes makes a job due",
    "tests/app/callers.py move_to_noon": "tests that it serves do not meet the end of a day",
    "tests/app/events/sinks.py make_due": "what it changes is due at once",
    "tests/app/money/good_requests.py withdraw": "in tables of the errors of endpoints",
    "tests/app/payments/cards/schedules/owed.py check_within_paid": "tests of it are found by `Schedule`",
    "tests/app/payments/cards/schedules/owed.py lasts": "tests of it are found by `Schedule`",
    "tests/app/payments/wallet/schedules/owed.py moment": "tests of it are found by `Schedule`",
    "tests/app/payments/wallet/schedules/owed.py paid_until": "tests of it are found by `Schedule`",
    "tests/app/payments/wallet/schedules/owed.py period": "tests of it are found by `Schedule`",
    "tests/app/payments/wallet/schedules/steps.py STARTS": "tests of it are found by `Schedule`",
    "tests/app/payments/wallet/wallets.py PRODUCTS": "tests buy these by `subscribe`",
    "tests/app/predictions/hosts.py set_up": "tests of its free units are in ALWAYS",
    "tests/app/withdrawals/payer.py FIRST": "its date is only returned",
    "tests/calendar/hard_instants.py HARD_INSTANTS": "tests that walk them have a table of results",
    "tests/vendors/signin/providers.py NOW": "tests pass it as the time",
}
"""What tests share that has words of dates, and why it need not put a test into the set."""
_READ = re.compile(
    r"\.(now|utcnow|today|time|time_ns|gmtime|localtime)\b|from (time|email) import|email\.utils|\bnow_ms\b|ctime"
)
"""Every way to read the time has one of these, so most files need not be parsed."""

CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----\n[^-]+-----END CERTIFICATE-----")
SUFFIXES = {".pem", ".py", ".yaml"}
FOLDERS = (*PACKAGES, "tests", "deploy", "bench")
PUBLIC = {"vendors/signin/game_center_roots.pem": "public authorities, whose ends nobody here chooses"}
LASTS = timedelta(days=3_653)


def read_time(files: list[Path]) -> set[str]:
    return {name(path) for path in files if _READ.search(path.read_text()) and reads_clock(nodes(path))}


def test_only_one_module_of_the_tests_reads_the_time() -> None:
    found = read_time(sorted((ROOT / "tests").rglob("*.py")))

    assert found == {CLOCK, *OTHER_READS}, f"use {CLOCK}, or a fixed time"


@pytest.mark.parametrize(
    "code",
    [
        "import time\nprint(time.time())",
        "from time import time_ns as now\nnow()",
        "from datetime import datetime as d\nd.now()",
        "import datetime\ndatetime.date.today()",
        "from streams.wire import codec\ncodec.now_ms()",
        "import email.utils\nemail.utils.localtime()",
        "from email import utils\nutils.formatdate(None)",
        "from email.utils import formatdate\nformatdate(usegmt=True)",
        "import time\ntime.ctime()",
    ],
)
def test_a_file_that_reads_the_time_otherwise_is_refused(code: str) -> None:
    assert _READ.search(code)
    assert reads_clock(list(ast.walk(ast.parse(code))))


@pytest.mark.parametrize(
    "code", ["from email.utils import formatdate\nformatdate(0)", "import time\ntime.ctime(0)"]
)
def test_a_text_of_a_given_time_is_no_read(code: str) -> None:
    assert not reads_clock(list(ast.walk(ast.parse(code))))


@pytest.mark.parametrize(
    ("path", "test", "depends"),
    [
        (
            "app/payments/wallet/upgrades/test_upgrades.py",
            "test_an_upgrade_replaces_the_subscription_and_refunds_what_is_unused",
            True,
        ),
        ("app/payments/wallet/test_orders.py", "test_an_order_that_has_expired_is_voided", True),
        ("app/payments/wallet/test_orders.py", "test_sync_does_not_capture", False),
        ("app/leaderboards/test_guide.py", "test_commands_of_the_page_print_what_it_shows", True),
        ("app/assets/test_assets.py", "test_a_subscription_lasts_for_its_period", True),
        ("app/ai/conversations/test_retention.py", "test_conversations_expire_by_the_clock_of_their_app", True),
        ("app/http/callers/test_signatures.py", "test_a_nonce_is_accepted_once", False),
        (
            "deploy/killed/test_rewards.py",
            "test_each_winner_is_rewarded_once_although_workers_are_killed",
            False,
        ),
    ],
)
def test_tests_are_found_by_the_words_of_dates(path: str, test: str, *, depends: bool) -> None:
    assert test in dict(definitions(ROOT / "tests" / path))
    assert depends_on_date(ROOT / "tests" / path, test) == depends


OF_DATES = (
    "now.month",
    "now.year",
    "now.day + 1",
    "monthrange(2027, 2)",
    "now.isocalendar()",
    "now.strftime(form)",
    'f"{now:%m}"',
    'f"{now:%d}"',
    "f\"{times['now']:%d}\"",
    'f"{now:%H:%M}"',
    "now.isoformat()[:10]",
    "rfc3339(utc_now())[11:16]",
    "epoch_s() % 86400",
    "epoch_s() // 86_400",
    "epoch_ms() % 86_400_000",
    "divmod(epoch_s(), 86400)",
    "now.replace(minute=0, hour=0)",
    "datetime.combine(today, noon)",
    "email.utils.localtime()",
    "formatdate()",
    '"select extract(month from ends_at) from assets"',
    "\"select date_trunc('day', ends_at) from assets\"",
    '"select ends_at::date from assets"',
    '"select current_date"',
    "\"select ends_at + '1 month'::interval from assets\"",
    "\"update jobs set due_at = now() + '1 month'\"",
    "\"update jobs set due_at = now() + interval '25 days'\"",
    '"update jobs set due_at = now() + make_interval(months => 1)"',
    '"update jobs set due_at = now() - $1"',
    '"select 1 from jobs where due_at > now()"',
    '"select 1 from jobs where clock_timestamp() >= due_at"',
    "\"update jobs set due_at = '2027-01-31T12:00:00Z'\"",
)
OF_LENGTHS = (
    "utc_now() + timedelta(days=30)",
    'b"%d %b" % (3, b"x")',
    "b'{\"uid\":%d}' % 3",
    'f"{share:.0%}"',
    "number % 3",
    "\"update jobs set due_at = now() - interval '61 minutes'\"",
    "\"select used_at > now() - interval '30 seconds' from jobs\"",
    '"update jobs set due_at = now() - make_interval(secs => $1)"',
    '"update jobs set due_at = now()"',
)
TESTS = (
    "def test_it() -> None:\n    print({code})",
    "class TestIt:\n    async def test_it(self) -> None:\n        print({code})",
    "def other():\n    return {code}\n\n\nclass TestIt:\n    def test_it(self) -> None:\n        other()",
    "OTHER, _ = {code}, 0\n\n\ndef used():\n    return OTHER\n\n\ndef test_it() -> None:\n    used()",
)
SHARED = ("def other():\n    return {code}", "class Other:\n    def other(self):\n        return {code}")
"""Tests, and what tests of other files share. `{code}` is an expression of the tables above."""


@pytest.mark.parametrize("code", OF_DATES)
def test_a_test_that_computes_dates_is_found(tmp_path: Path, code: str) -> None:
    for number, test in enumerate(TESTS):
        path = tmp_path / f"{number}.py"
        path.write_text(test.replace("{code}", code))
        assert dated(definitions(path)) & {"test_it", "TestIt"}, test


@pytest.mark.parametrize("code", OF_DATES)
def test_what_tests_share_must_be_known_if_it_computes_dates(tmp_path: Path, code: str) -> None:
    for number, shared in enumerate(SHARED):
        path = tmp_path / f"{number}.py"
        path.write_text(shared.replace("{code}", code))
        assert shared_for_dates(path) == {"other"}, shared


@pytest.mark.parametrize("code", OF_LENGTHS)
def test_a_test_of_lengths_of_time_is_not_found(tmp_path: Path, code: str) -> None:
    path = tmp_path / "it.py"
    path.write_text(f"def test_it() -> None:\n    print({code})")
    assert dated(definitions(path)) == frozenset()


def test_listed_files_exist() -> None:
    assert [path for path in (*ALWAYS, *NEVER) if not (ROOT / path).exists()] == []


def test_what_tests_share_for_dates_is_known_by_its_name() -> None:
    """A test is found by the names of what it calls, as the words for dates are in another file."""
    files = sorted(path for path in (ROOT / "tests").rglob("*.py") if not name(path).startswith((*NEVER, *OWN)))
    shared = [path for path in files if not path.name.startswith("test_")]
    unknown = {f"{name(path)} {defined}" for path in shared for defined in shared_for_dates(path)}

    assert unknown == KNOWN.keys(), "add the name to CALLS in tests/calendar/calendar_tests.py"


def shared_for_dates(path: Path) -> set[str]:
    """Return what a file defines with words of dates, by whose name no test is found."""
    found = {defined for defined, source in definitions(path, methods=True) if DATES.search(source)}
    return {defined for defined in found if not CALLS.fullmatch(f"{defined}(")}


def test_there_are_twelve_instants() -> None:
    assert len(INSTANTS) == 12


async def test_the_stores_have_the_time_of_the_tests(databases: Databases, services: Services) -> None:
    """If the clock of a run is moved, that of each process is."""
    database_s = await databases.admin.fetchval("select extract(epoch from clock_timestamp())::float8")
    valkey_s, _ = await services.valkey.client.time()

    assert abs(database_s - epoch_s()) < 60
    assert abs(valkey_s - epoch_s()) < 60


def certificates() -> dict[str, list[x509.Certificate]]:
    """Return the certificates in the source files, by the name of the file."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.*") if path.suffix in SUFFIXES]
    texts = {name(path): re.sub(r"(?m)^[ \t]+", "", path.read_text()) for path in files}
    found = {file: CERTIFICATE.findall(text) for file, text in texts.items()}
    return {
        file: [x509.load_pem_x509_certificate(pem.encode()) for pem in pems] for file, pems in found.items() if pems
    }


def test_no_certificate_ends_soon() -> None:
    found, later = certificates(), utc_now() + LASTS

    ending = {file for file, made in found.items() if min(one.not_valid_after_utc for one in made) < later}

    assert {"tests/nobody.pem", "vendors/sandbox/authority.py", *PUBLIC} <= found.keys()
    assert ending <= PUBLIC.keys()
