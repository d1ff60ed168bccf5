"""Settings are read from environment variables, and invalid ones are named."""

import pytest

from app.environment import SettingsError
from app.settings import Settings
from storage.secrets import DecryptionFailed, Keyring

KEY = "0123456789abcdef" * 4
ENVIRONMENT = {
    "DATABASE_URL": "postgresql:///x",
    "REDIS_URL": "redis://x",
    "PARLEY_MASTER_KEY": KEY,
    "PARLEY_ADMIN_TOKEN": "a token of an operator",
}


def test_trusted_proxies_are_read_from_the_environment():
    given = {"PARLEY_TRUSTED_PROXIES": "10.0.0.0/8, 192.0.2.1,2001:db8::/32,"}
    assert Settings.from_env(ENVIRONMENT | given).trusted_proxies == ("10.0.0.0/8", "192.0.2.1/32", "2001:db8::/32")
    assert Settings.from_env(ENVIRONMENT).trusted_proxies == ()
    with pytest.raises(SettingsError, match="PARLEY_TRUSTED_PROXIES"):
        Settings.from_env(ENVIRONMENT | {"PARLEY_TRUSTED_PROXIES": "the balancer"})


def test_dns_servers_are_read_from_the_environment():
    given = {"PARLEY_DNS": "10.0.0.2, 10.0.0.3:5353,2001:db8::1,[2001:db8::2]:5353"}
    servers = (("10.0.0.2", 53), ("10.0.0.3", 5353), ("2001:db8::1", 53), ("2001:db8::2", 5353))
    assert Settings.from_env(ENVIRONMENT | given).dns_servers == servers
    assert Settings.from_env(ENVIRONMENT).dns_servers == ()
    for wrong in ("a name", "10.0.0.2:0", "10.0.0.2:70000", "10.0.0.2:x", "[::1"):
        with pytest.raises(SettingsError, match="PARLEY_DNS must be comma-separated IP addresses"):
            Settings.from_env(ENVIRONMENT | {"PARLEY_DNS": wrong})


def test_connections_to_vendors_are_configured_by_the_environment():
    read = Settings.from_env(ENVIRONMENT)
    assert (read.vendor_idle_s, read.ignored_proxies) == (60, ())
    given = {"PARLEY_VENDOR_IDLE_S": "5", "HTTPS_PROXY": "http://p", "all_proxy": "p"}
    read = Settings.from_env(ENVIRONMENT | given)
    assert (read.vendor_idle_s, read.ignored_proxies) == (5, ("HTTPS_PROXY", "all_proxy"))


def test_variables_that_nothing_reads_are_found_with_the_most_similar_name():
    given = {
        "PARLEY_HTPP_PORT": "8080",
        "PARLEY_METRIC_PORT": "9090",
        "PARLEY_DATABASE_URL": "postgresql://h/d",
        "PARLEY_COLOUR": "blue",
        "PARLEY_OPENAI_MODEL": "of make run",
        "PARLEY_PORT": "tcp://10.0.0.1:8080",  # Set by Kubernetes for services `parley` and `parley-metrics`.
        "PARLEY_PORT_8080_TCP_ADDR": "10.0.0.1",
        "PARLEY_SERVICE_PORT_HTTP": "8080",
        "PARLEY_METRICS_SERVICE_HOST": "10.0.0.2",
        "HOME": "/root",
    }
    assert Settings.from_env(ENVIRONMENT).unknown_variables == ()
    assert Settings.from_env(ENVIRONMENT | given).unknown_variables == (
        ("PARLEY_COLOUR", None),
        ("PARLEY_DATABASE_URL", "DATABASE_URL"),
        ("PARLEY_HTPP_PORT", "PORT"),
        ("PARLEY_METRIC_PORT", "PARLEY_METRICS_PORT"),
    )


UNENCODED = [
    "postgresql://ada:p@ss/w#rd@db.example/parley",
    "postgresql://ada:pa12/x@db.example:5432/parley",
    "postgresql://ada:12/x@db.example/parley",
    "postgresql://ada:12?x@db.example/parley",
    "postgresql://ada:12?x=y@db.example/parley",
    "postgresql://ada:12#x@db.example/parley",
    "postgresql://ada:p@ss@db.example/parley",
    "postgresql://ada:100%@db.example/parley",
    "postgresql://db.example/parley?user=ada&password=p#w",
    "postgresql://db.example/parley?user=ada&password=p&w",
    "redis://:p/w@valkey.example:6379/0",
    "redis://:12/w@valkey.example:6379/0",
    "redis://:12?w@valkey.example/0",
    "redis+sentinel://:12#w@a.example:26379,b.example:26379/main",
]
ENCODED = [
    "postgresql://ada%40server:p%40s%2Fs%23%3F%25@db.example,db2.example:5433/parley?sslmode=require",
    "postgresql:///parley?host=/var/run/postgresql&user=ada@server&password=p@ss/w?rd",
    "redis://ada:p@ss@valkey.example/0",  # redis-py ends the password at the last @.
    "unix:///run/@valkey.sock",
]


def test_a_password_that_is_not_encoded_is_named_as_the_cause_and_not_repeated():
    for url in UNENCODED:
        name = "DATABASE_URL" if url.startswith("postgresql") else "REDIS_URL"
        with pytest.raises(SettingsError) as refused:
            Settings.from_env(ENVIRONMENT | {name: url})
        assert str(refused.value) == (
            f"parley: {name}: the password seems to have a special character that is not encoded: write @ as %40,"
            " / as %2F, # as %23, ? as %3F, % as %25, & as %26 and + as %2B"
        )
    for url in ENCODED:
        name = "DATABASE_URL" if url.startswith("postgresql") else "REDIS_URL"
        Settings.from_env(ENVIRONMENT | {name: url})


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("PORT", "0", "from 1 to 65535"),
        ("PORT", "65536", "from 1 to 65535"),
        ("PORT", "-1", "a whole number"),
        ("PORT", "9" * 5000, "a whole number"),
        ("PARLEY_METRICS_PORT", "0", "from 1 to 65535"),
        ("PARLEY_METRICS_PORT", "70000", "from 1 to 65535"),
        ("PARLEY_PROCESSES", "0", "from 1 to 256"),
        ("PARLEY_PROCESSES", "257", "from 1 to 256"),
        ("PARLEY_CONNECTIONS", "0", "from 1 to 1000000"),
        ("PARLEY_CONNECTIONS_PER_ADDRESS", "0", "from 1 to 1000000"),
        ("PARLEY_CONNECTIONS_PER_ADDRESS", "many", "a whole number"),
        ("PARLEY_KEEP_ALIVE_S", "0", "from 1 to 3600"),
        ("DATABASE_URL", "foo", "a URL that begins with postgresql://"),
        ("DATABASE_URL", "http://127.0.0.1/parley", "a URL that begins with postgresql://"),
        ("DATABASE_DIRECT_URL", "foo", "a URL that begins with postgresql://"),
        ("DATABASE_REPLICA_URL", "redis://x", "a URL that begins with postgresql://"),
        ("REDIS_URL", "http://x", "a URL that begins with redis://"),
        ("PARLEY_PUBLIC_URL", "foo", "a URL such as https://parley.example"),
        ("PARLEY_PUBLIC_URL", "https://parley .example", "a URL such as https://parley.example"),
        ("PARLEY_LOCAL_URL", "http://[", "a URL such as http://127.0.0.1:8090/v1"),
        ("AWS_ENDPOINT_URL_S3", "127.0.0.1:9000", "a URL such as http://127.0.0.1:9000"),
        ("S3_BUCKET", "Foo Bar", "the name of a bucket: letters, digits, dots and hyphens"),
        ("S3_BUCKET", "a/b", "the name of a bucket: letters, digits, dots and hyphens"),
        ("PARLEY_LOG_LEVEL", "loud", "one of debug, info, warning, error"),
    ],
)
def test_invalid_environment_variables_are_named_with_their_requirements(name, value, what):
    with pytest.raises(SettingsError) as refused:
        Settings.from_env(ENVIRONMENT | {name: value})
    assert str(refused.value) == f"parley: {name} must be {what}"


def test_a_bucket_is_named_by_itself_or_by_an_access_point():
    for bucket in ("files", "files.of-parley_1", "arn:aws:s3:eu-west-1:123456789012:accesspoint/files"):
        assert Settings.from_env(ENVIRONMENT | {"S3_BUCKET": bucket}).s3_bucket == bucket


@pytest.mark.parametrize("path", ["", "/", "/0", "/15", "/2?db=3"])
def test_redis_url_may_name_a_database_by_its_number(path: str):
    assert Settings.from_env(ENVIRONMENT | {"REDIS_URL": f"rediss://x{path}"}).redis_url == f"rediss://x{path}"


@pytest.mark.parametrize("path", ["/two", "/2/3", "/-1", "/2x", "//"])
def test_redis_url_with_a_path_that_is_no_database_is_refused(path: str):
    for scheme in ("redis", "rediss"):
        with pytest.raises(SettingsError, match="REDIS_URL must have no path, or the number"):
            Settings.from_env(ENVIRONMENT | {"REDIS_URL": f"{scheme}://x{path}"})


def test_the_public_url_is_that_of_the_environment_and_no_wildcard():
    read = Settings.from_env(ENVIRONMENT | {"HOST": "0.0.0.0", "PORT": "8081"})  # noqa: S104 - not bound
    assert (read.public_url, read.has_public_url) == ("http://127.0.0.1:8081", False)
    read = Settings.from_env(ENVIRONMENT | {"HOST": "::", "PARLEY_ENV": "development"})
    assert (read.public_url, read.has_public_url) == ("http://[::1]:8080", True)
    read = Settings.from_env(ENVIRONMENT | {"PARLEY_PUBLIC_URL": "https://parley.example/"})
    assert (read.public_url, read.has_public_url) == ("https://parley.example", True)
    for wildcard in ("http://0.0.0.0:8080", "http://[::]"):
        with pytest.raises(SettingsError, match="PARLEY_PUBLIC_URL must be the URL at which clients reach"):
            Settings.from_env(ENVIRONMENT | {"PARLEY_PUBLIC_URL": wildcard})


def test_connections_and_ports_of_operators_are_set_by_the_environment():
    read = Settings.from_env(ENVIRONMENT)
    assert (read.connections, read.connections_per_address, read.keep_alive_s) == (None, 1000, 75)
    assert (read.public_metrics, read.public_docs) == (None, None)
    given = {
        "PARLEY_CONNECTIONS": "500",
        "PARLEY_CONNECTIONS_PER_ADDRESS": "20",
        "PARLEY_KEEP_ALIVE_S": "620",
        "PARLEY_METRICS": "public",
        "PARLEY_DOCS": "private",
    }
    read = Settings.from_env(ENVIRONMENT | given)
    assert (read.connections, read.connections_per_address, read.keep_alive_s) == (500, 20, 620)
    assert (read.public_metrics, read.public_docs) == (True, False)
    with pytest.raises(SettingsError, match="PARLEY_DOCS must be public or private"):
        Settings.from_env(ENVIRONMENT | {"PARLEY_DOCS": "on"})


@pytest.mark.parametrize(
    ("port", "processes", "what"),
    [
        ("8080", "1", " must differ from PORT"),
        ("8078", "3", ": the ports 8078-8080 of the 3 processes must not include PORT, which is 8080"),
    ],
)
def test_ports_for_metrics_do_not_reach_that_of_clients(port: str, processes: str, what: str):
    given = {"PORT": "8080", "PARLEY_METRICS_PORT": port, "PARLEY_PROCESSES": processes}
    with pytest.raises(SettingsError) as refused:
        Settings.from_env(ENVIRONMENT | given)
    assert str(refused.value) == f"parley: PARLEY_METRICS_PORT{what}"


def test_the_smallest_and_largest_numbers_of_the_environment_are_accepted():
    given = {"PORT": "65535", "PARLEY_METRICS_PORT": "1", "PARLEY_PROCESSES": "256"}
    read = Settings.from_env(ENVIRONMENT | given)
    assert (read.port, read.metrics_port, read.processes) == (65535, 1, 256)
    assert Settings.from_env(ENVIRONMENT).metrics_port is None


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        *(
            ("PARLEY_ADMIN_TOKEN", value, "must be a secret of at least 16 characters")
            for value in ("change-me", "secret", "development", "fifteen letters")
        ),
        ("PARLEY_ADMIN_TOKEN", "", "is not set"),
        ("PARLEY_MASTER_KEY", "", "is not set"),
        *(
            ("PARLEY_MASTER_KEY", value, "must be 32 random bytes in hexadecimal")
            for value in ("change-me", "secret", "00" * 32, "01" * 32, "ab" * 31, f"{KEY},", f"{KEY},{'00' * 32}")
        ),
    ],
)
@pytest.mark.parametrize("environment", ["production", ""], ids=["production", "unset"])
def test_a_server_does_not_start_with_default_secrets(name: str, value: str, what: str, environment: str):
    with pytest.raises(SettingsError, match=f"{name} {what}"):
        Settings.from_env(ENVIRONMENT | {name: value, "PARLEY_ENV": environment})


def test_a_master_key_is_replaced_by_a_list_that_begins_with_the_new_one():
    old = Keyring.from_hex(Settings.from_env(ENVIRONMENT).master_key.get_secret_value())
    given = ENVIRONMENT | {"PARLEY_MASTER_KEY": f"{'fedcba9876543210' * 4}, {KEY}"}
    both = Keyring.from_hex(Settings.from_env(given).master_key.get_secret_value())
    assert both.decrypt(old.encrypt("sk-1", aad="config"), aad="config") == "sk-1"
    with pytest.raises(DecryptionFailed):
        old.decrypt(both.encrypt("sk-2", aad="config"), aad="config")


def test_a_production_server_uses_no_sandbox():
    given = ENVIRONMENT | {"PARLEY_ENV": "development", "PARLEY_SANDBOX_URL": "127.0.0.1:8099"}
    with pytest.raises(SettingsError, match=r"PARLEY_SANDBOX_URL must be a URL such as http://127\.0\.0\.1:8099"):
        Settings.from_env(given)
    given = ENVIRONMENT | {"PARLEY_SANDBOX_URL": "http://127.0.0.1:8099/"}
    with pytest.raises(SettingsError, match="PARLEY_SANDBOX_URL is only for PARLEY_ENV=development"):
        Settings.from_env(given | {"PARLEY_ENV": "production"})
    assert Settings.from_env(given | {"PARLEY_ENV": "development"}).sandbox_url == "http://127.0.0.1:8099"


def test_a_production_server_delivers_its_mails():
    given = ENVIRONMENT | {"PARLEY_INBOX_URL": "smtp://127.0.0.1:2525"}
    with pytest.raises(SettingsError, match="PARLEY_INBOX_URL is only for PARLEY_ENV=development"):
        Settings.from_env(given | {"PARLEY_ENV": "production"})
    assert Settings.from_env(given | {"PARLEY_ENV": "development"}).inbox_url == "smtp://127.0.0.1:2525"
    for wrong in ("http://127.0.0.1:2525", "smtp://127.0.0.1", "smtp://127.0.0.1:x"):
        with pytest.raises(SettingsError, match="must be a URL such as smtp://"):
            Settings.from_env(given | {"PARLEY_ENV": "development", "PARLEY_INBOX_URL": wrong})


@pytest.mark.parametrize(
    ("given", "url", "shown"),
    [
        ("", "http://parley.example", False),
        ("on", "https://parley.example", True),
        ("on", "http://127.0.0.1:80", True),
    ],
)
def test_production_shows_the_console_only_if_it_is_on(given: str, url: str, shown: bool) -> None:
    env = {"PARLEY_ENV": "production", "PARLEY_ADMIN_TOKEN": "x" * 16, "PARLEY_CONSOLE": given}
    assert Settings.from_env(ENVIRONMENT | env | {"PARLEY_PUBLIC_URL": url}).shows_console is shown


def test_the_cookie_of_the_console_is_not_sent_in_plain_text_between_machines() -> None:
    env = {"PARLEY_ENV": "production", "PARLEY_ADMIN_TOKEN": "x" * 16, "PARLEY_CONSOLE": "on"}
    with pytest.raises(
        SettingsError, match="PARLEY_CONSOLE=on needs a PARLEY_PUBLIC_URL that begins with https://"
    ):
        Settings.from_env(ENVIRONMENT | env | {"PARLEY_PUBLIC_URL": "http://parley.example"})
