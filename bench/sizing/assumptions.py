"""What is assumed about users, and about one server of each kind. Each field is an option of the command."""

from dataclasses import dataclass, field
from typing import Any


def _of(default: float, meaning: str) -> Any:
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True, slots=True)
class Assumptions:
    turns: float = _of(5, "turns per user and day")
    new: float = _of(0.3, "share of turns that begin a conversation")
    spoken: float = _of(0.3, "share of turns with speech")
    durable: float = _of(0, "share of turns with `durable`")
    deltas: float = _of(150, "deltas of an answer")
    stream_s: float = _of(8, "seconds that a stream takes")
    turn_bytes: float = _of(2_000, "bytes of text stored for a turn, question and answer")
    audio_bytes: float = _of(80_000, "bytes of speech of a turn: 10 s of MP3 with 64 kbit/s")
    vendor_delta_bytes: float = _of(300, "bytes that a vendor sends for a delta")
    rest: float = _of(20, "reading REST calls per user and day")
    logins: float = _of(1, "logins of a known device per user and day")
    new_users: float = _of(0.01, "new users, as a share of daily users")
    scores: float = _of(1, "scores of leaderboards per user and day")
    emails: float = _of(0.1, "emails per user and day")
    payments: float = _of(0.005, "card payments per user and day")
    peak: float = _of(3, "load of the peak hour, as a multiple of the mean")
    busy: float = _of(0.6, "highest share of a core that is planned to be busy")
    kept_days: float = _of(90, "days that turns are kept (`conversation_days`, and `PARLEY_ATTEMPT_DAYS`)")
    wal: float = _of(2, "WAL as a multiple of what was measured: full pages after each checkpoint")
    node_cores: float = _of(8, "cores of a node")
    stream_kib: float = _of(40, "KiB of memory of a node for a stream")
    valkey_gb: float = _of(32, "GB of memory of a Valkey primary")
    postgres_cores: float = _of(32, "cores of the PostgreSQL server")
    postgres_gb: float = _of(256, "GB of memory of the PostgreSQL server")
    postgres_tb: float = _of(16, "TB of disk of the PostgreSQL server")
    connections: float = _of(500, "connections that PostgreSQL serves well without a pooler")
    postgres_wal: float = _of(100, "MB/s of WAL that its disk and its standby accept")
