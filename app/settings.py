"""Settings from environment variables, which are read once. No other module of the server reads the environment.

The page of all variables (docs/reference/settings.md) is generated from this module.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self, get_type_hints

from pydantic import SecretStr

from app.environment import LAST_PORT, EnvironmentReader, SettingsError, UnknownVariable, own_url
from storage.valkey.addresses import SCHEMES as VALKEY_SCHEMES

_DNS_PORT = 53
_MAX_CONNECTIONS = 1_000_000
_MAX_KEEP_ALIVE_S = 3_600
_MAX_TURN_LISTENERS = 10_000


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a server process. One that is read from variables is annotated with their names."""

    database_url: Annotated[str, "DATABASE_URL"]
    """URL of PostgreSQL: `postgresql://user:password@host:5432/database`. `make run` uses it too, if `REDIS_URL` is
    also set. Special characters of the password are written as %XX: `@` as `%40`, `/` as `%2F`, `#` as `%23`, `?`
    as `%3F`, `%` as `%25`."""
    redis_url: Annotated[str, "REDIS_URL"]
    """URL of Valkey or Redis: `redis://host:6379/0`; of a cluster: `redis+cluster://host:6379,host:6379`, with some
    of its nodes; of servers that Sentinel watches: `redis+sentinel://host:26379,host:26379/name`, with some of the
    Sentinels and their name of the group. `rediss`, `rediss+cluster` and `rediss+sentinel` use TLS ([clusters and
    Sentinel](../operating/valkey.md))."""
    master_key: Annotated[SecretStr, "PARLEY_MASTER_KEY"]
    """32 random bytes in hexadecimal, or several such keys, comma-separated. Encrypts secrets in configs, stored
    tokens and jobs, and signs links to files and receipts. The first key encrypts; all of them decrypt ([how to
    replace it](../operating/secrets.md#replace-the-master-key))."""
    admin_token: Annotated[SecretStr, "PARLEY_ADMIN_TOKEN"]
    """The root token: a bearer token of the admin API that includes all roles, at least 16 characters."""
    database_direct_url: Annotated[str | None, "DATABASE_DIRECT_URL"] = None
    """URL of the same PostgreSQL database without a pooler, for migrations, notifications and the worker's jobs.
    Set it if and only if `DATABASE_URL` is that of a [pooler](../operating/postgresql.md#behind-a-pooler) such as
    PgBouncer. Default: `DATABASE_URL`."""
    database_replica_url: Annotated[str | None, "DATABASE_REPLICA_URL"] = None
    """URL of a [replica](../operating/postgresql.md#a-replica-for-reading) of the database (hot standby), to which
    lists and figures for operators go. Default: `DATABASE_URL`."""
    env: Annotated[Literal["development", "production"], "PARLEY_ENV"] = "production"
    """`production` or `development`, which also serves the endpoints under `/dev`: at `localhost`, at IP addresses,
    and at the host of `PARLEY_PUBLIC_URL`."""
    host: Annotated[str, "HOST"] = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, "PORT"] = 8080
    """Port to listen on."""
    processes: Annotated[int, "PARLEY_PROCESSES"] = 1
    """Number of processes that serve `PORT`."""
    public_url: Annotated[str, "PARLEY_PUBLIC_URL"] = "http://127.0.0.1:8080"
    """The URL at which clients reach the server: the base of links in responses and emails. Without it, in
    production, no email with a link is sent. Default: the address to listen on."""
    has_public_url: bool = True
    """Whether clients reach the server at `public_url`. Otherwise it is only known where the server listens."""
    metrics_host: Annotated[str, "PARLEY_METRICS_HOST"] = "127.0.0.1"
    """Address of the metrics ports. In a container set it to 0.0.0.0 and publish the ports to your Prometheus
    only."""
    metrics_port: Annotated[int | None, "PARLEY_METRICS_PORT"] = None
    """The first of the metrics ports. Process `n`, counted from 0, and its successors serve `/metrics` and
    `/readyz` on this port + `n`."""
    worker_port: Annotated[int | None, "PARLEY_WORKER_PORT"] = None
    """Port of a worker for `/metrics`, `/healthz` and `/readyz`, on `PARLEY_METRICS_HOST`."""
    audit_days: Annotated[int, "PARLEY_AUDIT_DAYS"] = 365
    """Days after which rows of the audit log are deleted, at least 30."""
    attempt_days: Annotated[int | None, "PARLEY_ATTEMPT_DAYS"] = None
    """Days for which calls to vendors are kept at least, with their usage and cost. They are deleted in whole
    months. Default: they are never deleted."""
    data_dir: Annotated[Path, "PARLEY_DATA_DIR"] = Path(".parley")
    """Folder for files if no S3 bucket is set."""
    redis_prefix: Annotated[str, "PARLEY_REDIS_PREFIX"] = "parley:"
    """Prefix of all keys and channels in Valkey."""
    local_url: Annotated[str | None, "PARLEY_LOCAL_URL"] = None
    """URL of `python -m vendors.local`, if you run the local engines: `http://127.0.0.1:PORT/v1`. Accounts of local
    platforms that have no URL use it."""
    sandbox_url: Annotated[str | None, "PARLEY_SANDBOX_URL"] = None
    """URL of `python -m vendors.sandbox`, which replaces `{sandbox}` in configs of the kinds `sign_in`, `sms`,
    `cardpay`, `walletpay`, `payouts` and `events`. Only with `PARLEY_ENV=development`."""
    inbox_url: Annotated[str | None, "PARLEY_INBOX_URL"] = None
    """URL of the sandbox's mail server, `smtp://127.0.0.1:PORT`, which replaces `{inbox}` in configs of the kind
    `mail_accounts`. Only with `PARLEY_ENV=development`."""
    drain_timeout_s: Annotated[float, "PARLEY_DRAIN_TIMEOUT_S"] = 60
    """Seconds for which streams may continue after SIGTERM, and in a process that is replaced. Use more than twice
    the time for which your proxy keeps idle connections."""
    drain_notice_s: Annotated[float, "PARLEY_DRAIN_NOTICE_S"] = 0
    """Seconds for which a server serves requests after SIGTERM at least, with 503 from `/readyz` and for new
    streams. Behind a proxy with several nodes, use twice the time in which its health checks notice that: 3 with
    `deploy/haproxy.cfg`. At most `PARLEY_DRAIN_TIMEOUT_S`."""
    log_level: Annotated[str, "PARLEY_LOG_LEVEL"] = "info"
    """`debug`, `info`, `warning` or `error`."""
    s3_bucket: Annotated[str | None, "S3_BUCKET"] = None
    """Bucket in which files are stored, on S3 or a compatible server, or the ARN of an access point to it."""
    s3_endpoint_url: Annotated[str | None, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"] = None
    """URL of the S3 server. Default: that of AWS."""
    traces_url: Annotated[str | None, "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = None
    """A collector that accepts OTLP over HTTP: its base URL, or the complete URL for traces. Each stream is sent as
    a trace. Requires the extra `otel` (`deploy/locks/otel.lock`). Default: no traces."""
    trusted_proxies: Annotated[tuple[str, ...], "PARLEY_TRUSTED_PROXIES"] = ()
    """Networks (CIDR, comma-separated) whose `X-Forwarded-For` is trusted. `PARLEY_CONNECTIONS_PER_ADDRESS` does
    not apply to them."""
    connections: Annotated[int | None, "PARLEY_CONNECTIONS"] = None
    """Maximum number of client connections per process. Further connections get 503. 1,000 file descriptors, or a
    quarter of all if that is less, are reserved for stores and files; half of the others is the maximum. Default:
    the maximum."""
    connections_per_address: Annotated[int, "PARLEY_CONNECTIONS_PER_ADDRESS"] = 1_000
    """Maximum number of these connections per IPv4 address or IPv6 /64 network. Further connections get 429."""
    keep_alive_s: Annotated[float, "PARLEY_KEEP_ALIVE_S"] = 75
    """Seconds for which a connection may wait for its next request. A proxy in front of Parley must close its idle
    connections earlier."""
    public_metrics: Annotated[bool | None, "PARLEY_METRICS"] = None
    """`public` serves `/metrics` on `PORT` too, `private` on the metrics ports only. Default: `private` in
    production, `public` in development."""
    public_docs: Annotated[bool | None, "PARLEY_DOCS"] = None
    """`public` serves `/docs` and `/openapi.json` on `PORT` too, `private` on the metrics ports only. Default:
    `private` in production, `public` in development."""
    console: Annotated[bool | None, "PARLEY_CONSOLE"] = None
    """`on` serves the [console](../operating/console.md) at `/console` on `PORT`. In production it needs a
    `PARLEY_PUBLIC_URL` that begins with `https://`. Default: `off` in production, `on` in development."""
    dns_servers: Annotated[tuple[tuple[str, int], ...], "PARLEY_DNS"] = ()
    """DNS servers for the host names of vendors, such as `10.0.0.2,10.0.0.3:5353`. Default: those of the system."""
    vendor_idle_s: Annotated[float, "PARLEY_VENDOR_IDLE_S"] = 60
    """Seconds for which idle connections to vendors are kept."""
    turn_listeners: Annotated[int, "PARLEY_TURN_LISTENERS"] = 32
    """Maximum number of turns per process whose end is [detected](../guides/turn-detection.md) at once. Further
    requests with `turn_detection` get 503. Each takes 6 to 9 MiB of memory and about 1% of a core while the user
    speaks."""
    ignored_proxies: tuple[str, ...] = ()
    """Environment variables that name a proxy. They are ignored: vendors are called directly."""
    unknown_variables: tuple[UnknownVariable, ...] = ()
    """Environment variables that look like settings, and are none."""

    @property
    def direct_url(self) -> str:
        """The URL of PostgreSQL for what needs a session: migrations, notifications, and the library of jobs."""
        return self.database_direct_url or self.database_url

    @property
    def direct_variable(self) -> str:
        """The environment variable that `direct_url` is from."""
        return "DATABASE_DIRECT_URL" if self.is_pooled else "DATABASE_URL"

    @property
    def is_pooled(self) -> bool:
        """Whether `database_url` is that of a pooler, so that each transaction may get another session."""
        return self.database_direct_url is not None

    @property
    def development(self) -> bool:
        return self.env == "development"

    @property
    def shows_metrics(self) -> bool:
        """Whether the public port serves `/metrics`."""
        return self.development if self.public_metrics is None else self.public_metrics

    @property
    def shows_docs(self) -> bool:
        """Whether the public port serves `/docs` and `/openapi.json`."""
        return self.development if self.public_docs is None else self.public_docs

    @property
    def shows_console(self) -> bool:
        """Whether the public port serves `/console`."""
        return self.development if self.console is None else self.console

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Self:
        """Read the settings from the environment.

        Raises `SettingsError` if a setting is missing or invalid. Its message names the setting, never a secret.
        """
        read = EnvironmentReader(os.environ if env is None else env)  # noqa: TID251 - the only reader of the environment
        mode = read.text("PARLEY_ENV", "production")
        if mode not in {"development", "production"}:
            raise SettingsError("parley: PARLEY_ENV must be development or production")
        port = read.number("PORT", 8080, minimum=1, maximum=LAST_PORT)
        host = read.text("HOST", "127.0.0.1")
        public_url = read.public_url(development=mode == "development")
        processes = read.number("PARLEY_PROCESSES", 1, minimum=1, maximum=256)
        return cls(
            database_url=read.store_url("DATABASE_URL", "postgresql", "postgres"),
            database_direct_url=read.optional_store_url("DATABASE_DIRECT_URL", "postgresql", "postgres"),
            database_replica_url=read.optional_store_url("DATABASE_REPLICA_URL", "postgresql", "postgres"),
            redis_url=read.store_url("REDIS_URL", *VALKEY_SCHEMES),
            master_key=SecretStr(read.master_key()),
            admin_token=SecretStr(read.secret("PARLEY_ADMIN_TOKEN", development=mode == "development")),
            env="development" if mode == "development" else "production",
            host=host,
            port=port,
            processes=processes,
            public_url=(public_url or own_url(host, port)).rstrip("/"),
            has_public_url=public_url is not None or mode == "development",
            metrics_host=read.text("PARLEY_METRICS_HOST", "127.0.0.1"),
            metrics_port=read.metrics_port(port, processes),
            worker_port=read.optional_number("PARLEY_WORKER_PORT", minimum=1, maximum=LAST_PORT),
            audit_days=read.number("PARLEY_AUDIT_DAYS", 365, minimum=30, maximum=36_500),
            attempt_days=read.optional_number("PARLEY_ATTEMPT_DAYS", minimum=30, maximum=36_500),
            data_dir=Path(read.text("PARLEY_DATA_DIR", ".parley")),
            redis_prefix=read.text("PARLEY_REDIS_PREFIX", "parley:"),
            local_url=read.http_url("PARLEY_LOCAL_URL", example="http://127.0.0.1:8090/v1"),
            sandbox_url=read.sandbox_url(development=mode == "development"),
            inbox_url=read.inbox_url(development=mode == "development"),
            drain_timeout_s=read.number("PARLEY_DRAIN_TIMEOUT_S", 60),
            drain_notice_s=read.number("PARLEY_DRAIN_NOTICE_S", 0),
            log_level=read.log_level(),
            s3_bucket=read.bucket(),
            s3_endpoint_url=read.s3_endpoint_url(),
            traces_url=read.traces_url(),
            trusted_proxies=read.networks("PARLEY_TRUSTED_PROXIES"),
            connections=read.optional_number("PARLEY_CONNECTIONS", minimum=1, maximum=_MAX_CONNECTIONS),
            connections_per_address=read.number(
                "PARLEY_CONNECTIONS_PER_ADDRESS", 1_000, minimum=1, maximum=_MAX_CONNECTIONS
            ),
            keep_alive_s=read.number("PARLEY_KEEP_ALIVE_S", 75, minimum=1, maximum=_MAX_KEEP_ALIVE_S),
            public_metrics=read.is_public("PARLEY_METRICS"),
            public_docs=read.is_public("PARLEY_DOCS"),
            console=read.console(public_url or own_url(host, port), development=mode == "development"),
            dns_servers=read.servers("PARLEY_DNS", port=_DNS_PORT),
            vendor_idle_s=read.number("PARLEY_VENDOR_IDLE_S", 60),
            turn_listeners=read.number("PARLEY_TURN_LISTENERS", 32, minimum=1, maximum=_MAX_TURN_LISTENERS),
            ignored_proxies=read.proxies(),
            unknown_variables=read.unknown(_variables() | OF_DEVELOPMENT.keys()),
        )


def _variables() -> frozenset[str]:
    """Return the names of all variables that `Settings` are read from."""
    hints = get_type_hints(Settings, include_extras=True).values()
    return frozenset(name for hint in hints for name in getattr(hint, "__metadata__", ()))


OF_DEVELOPMENT = {
    "PARLEY_OPENAI_BASE_URL": "A server with the protocol of OpenAI, for which a strategy `openai` is added.",
    "PARLEY_OPENAI_API_KEY": "Its key, if it needs one.",
    "PARLEY_OPENAI_MODEL": "Its model. Default: `gpt-4o-mini`.",
    "PARLEY_SERVER_KEY": "The key of both apps for server tokens. Default: a new one, which is kept.",
    "APP_SIGN_KEY": "The key with which clients of the app `signed` sign. Default: a new one, which is kept.",
}
"""Variables that only `make run` reads."""

OF_LIBRARIES = {
    "AWS_ACCESS_KEY_ID": "With `AWS_SECRET_ACCESS_KEY`, `AWS_REGION` and others of AWS: the access to the bucket.",
    "OTEL_SDK_DISABLED": "`true` turns traces off. OpenTelemetry's variables for the exporter, the sampler, the "
    "resource and the limits of spans apply too; those of its batch processor (`OTEL_BSP_…`) do not.",
    "PYTHONMALLOC": "With `malloc`, a process returns the memory of small objects too: 30 s after 2,000 readers "
    "have left, memory stays 9% above its earlier level (34% without `malloc`). This costs CPU time: about 12% "
    "more per delta in full-speed streams, and 5% more per short stream.",
}
"""Variables that libraries and Python read."""
