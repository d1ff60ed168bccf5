"""Tests read the time from one module, by which `make test-dates` finds them, and no certificate ends soon."""

import ast
import re
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from app.services import Services
from tests.calendar_tests import RULES, depends_on_date
from tests.clock import epoch_s, utc_now
from tests.clock_reads import reads_clock
from tests.dates import INSTANTS
from tests.servers import Databases
from tests.source_files import PACKAGES, ROOT, name, nodes

CLOCK = "tests/clock.py"
OTHER_READS = {"tests/wire/test_codec.py": "it tests the clock of events"}
_READ = re.compile(r"\.(now|utcnow|today|time|time_ns|gmtime|localtime)\b|from time import|\bnow_ms\b")
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

    assert found == {CLOCK, *OTHER_READS}, f"use {CLOCK}, which puts a test into `make test-dates`"


@pytest.mark.parametrize(
    "code",
    [
        "import time\nprint(time.time())",
        "from time import time_ns as now\nnow()",
        "from datetime import datetime as d\nd.now()",
        "import datetime\ndatetime.date.today()",
        "from streams.wire import codec\ncodec.now_ms()",
    ],
)
def test_a_file_that_reads_the_time_otherwise_is_refused(code: str) -> None:
    assert _READ.search(code)
    assert reads_clock(list(ast.walk(ast.parse(code))))


@pytest.mark.parametrize(
    ("path", "depends"),
    [
        ("tests/test_calendar.py", True),
        ("tests/app/payments/test_proration.py", True),
        ("tests/app/test_auth_signatures.py", True),
        ("tests/vendors/payments/cards/test_stripe_sdk.py", True),
        ("tests/app/images/test_images.py", True),
        ("tests/streams/test_turns.py", False),
        ("tests/actors/test_mailbox.py", False),
    ],
)
def test_the_tests_of_the_calendar_are_found_by_what_they_use(path: str, *, depends: bool) -> None:
    assert depends_on_date(ROOT / path) == depends


def test_rules_name_files_that_exist() -> None:
    assert [rule for rule in RULES if not (ROOT / rule).exists()] == []


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

    ending = {file for file, made in found.items() if any(each.not_valid_after_utc < later for each in made)}

    assert {"tests/nobody.pem", "vendors/sandbox/authority.py", *PUBLIC} <= found.keys()
    assert ending <= PUBLIC.keys()
