"""What a number of daily users needs at the peak, and which server is too small first."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.sizing.assumptions import Assumptions
from bench.sizing.figures import Measured

_DAY_S = 86_400
_MONTH_DAYS = 30
_ENDED_S = 120
"""How long what a stream leaves in Valkey is kept."""
_PROCESS_MB = 150
_PROCESS_CONNECTIONS = 33
"""The connections that a server process may open to PostgreSQL."""
_READS: Mapping[str, float] = {
    "profile": 0.4,
    "list of conversations": 0.2,
    "assets": 0.2,
    "best ten of a leaderboard": 0.15,
    "profile, first use of a session": 0.05,
}
"""The reading REST calls, and the share of each."""
SPOKEN, NEW, FURTHER, DURABLE = "turn, with speech", "turn, new conversation", "turn, further", "turn, `durable`"
_GROW_WITH_TIME = frozenset({"Valkey commands", "Valkey µs", "node µs"})
"""What a durable turn adds in these columns grows with its length: its events are copied to Valkey about ten times
a second, however many there are."""
_BASE64 = 4 / 3
_DELTA_CHARACTERS = 16
"""The length of a delta of `bench.upstream`."""


@dataclass(frozen=True, slots=True)
class Share:
    """A need of what one server can do."""

    name: str
    of_one: float


@dataclass(frozen=True, slots=True)
class Needs:
    """All figures are those of the peak, except the growth and what is kept."""

    users: int
    turns_per_s: float
    rest_per_s: float
    streams: float
    node_cores: float
    node_gb: float
    nodes: int
    commands_per_s: float
    valkey_cores: float
    valkey_gb: float
    primaries: int
    transactions_per_s: float
    postgres_cores: float
    connections: int
    wal_mb_per_s: float
    index_gb: float
    growth_tb: float
    kept_tb: float
    puts_per_s: float
    files_tb: float
    to_clients_gbit: float
    from_vendors_gbit: float
    shares: Sequence[Share]

    @property
    def bottlenecks(self) -> list[Share]:
        """The shares, the largest first."""
        return sorted(self.shares, key=lambda share: -share.of_one)


def calls_of(assumed: Assumptions) -> dict[str, float]:
    """Return how often a user makes each measured call in a day."""
    turns, written = assumed.turns, assumed.turns * (1 - assumed.spoken)
    return {
        NEW: written * assumed.new,
        FURTHER: written * (1 - assumed.new),
        SPOKEN: turns * assumed.spoken,
        **{name: assumed.rest * share for name, share in _READS.items()},
        "login of a known device": assumed.logins,
        "login of a new device": assumed.new_users,
        "score of a leaderboard": assumed.scores,
        "email, with its sending": assumed.emails,
        "card payment: intent": assumed.payments,
        "card payment: webhook and grant": assumed.payments,
    }


def needs_of(users: int, assumed: Assumptions, measured: Measured) -> Needs:
    calls, at_peak = calls_of(assumed), users / _DAY_S * assumed.peak
    turns_per_s, spoken_per_s = assumed.turns * at_peak, assumed.turns * assumed.spoken * at_peak
    rest_per_s = (sum(calls.values()) - assumed.turns) * at_peak
    streams, scale = turns_per_s * assumed.stream_s, assumed.deltas / measured.deltas

    def per_s(column: str) -> float:
        """Return the sum over all calls. `durable` is added as what it costs more than other turns."""
        of_calls = sum(count * measured.costs[name][column] for name, count in calls.items())
        extra = max(0.0, measured.costs[DURABLE][column] - measured.costs[NEW][column])
        if column in _GROW_WITH_TIME:
            extra *= assumed.stream_s / measured.stream_s
        return (of_calls + assumed.turns * assumed.durable * extra) * at_peak

    turns_cpu = sum(calls[name] * measured.costs[name]["node µs"] for name in (NEW, FURTHER, SPOKEN)) * at_peak
    node_cores = (per_s("node µs") + turns_cpu * (scale - 1) + per_s("worker µs")) / 1e6
    kept = _kept_bytes(assumed, measured, calls) * users
    commands_per_s, valkey_cores = per_s("Valkey commands"), per_s("Valkey µs") / 1e6
    valkey_gb = _valkey_bytes(streams, turns_per_s, assumed, measured) / 1e9
    postgres_cores = per_s("PostgreSQL µs") / 1e6
    wal = (per_s("WAL B") + turns_per_s * _added_text(assumed, measured)) * assumed.wal / 1e6
    index_gb = users * _index_bytes(assumed, measured) / 1e9
    vendor_bytes = assumed.deltas * assumed.vendor_delta_bytes
    processes = max(2, math.ceil(node_cores / assumed.busy))
    growth_tb, kept_tb = kept * _MONTH_DAYS / 1e12, kept * assumed.kept_days / 1e12
    return Needs(
        users=users,
        turns_per_s=turns_per_s,
        rest_per_s=rest_per_s,
        streams=streams,
        node_cores=node_cores,
        node_gb=streams * assumed.stream_kib * 1024 / 1e9 + processes * _PROCESS_MB / 1e3,
        nodes=max(2, math.ceil(processes / assumed.node_cores)),
        commands_per_s=commands_per_s,
        valkey_cores=valkey_cores,
        valkey_gb=valkey_gb,
        primaries=max(1, math.ceil(valkey_cores / assumed.busy), math.ceil(valkey_gb / assumed.valkey_gb)),
        transactions_per_s=per_s("transactions"),
        postgres_cores=postgres_cores,
        connections=processes * _PROCESS_CONNECTIONS,
        wal_mb_per_s=wal,
        index_gb=index_gb,
        growth_tb=growth_tb,
        kept_tb=kept_tb,
        puts_per_s=spoken_per_s,
        files_tb=users * assumed.turns * assumed.spoken * assumed.audio_bytes * _MONTH_DAYS / 1e12,
        to_clients_gbit=_client_bytes(assumed, measured, turns_per_s, spoken_per_s) * 8 / 1e9,
        from_vendors_gbit=(turns_per_s * vendor_bytes + spoken_per_s * assumed.audio_bytes) * 8 / 1e9,
        shares=(
            Share("Valkey: the core of one primary", valkey_cores / assumed.busy),
            Share("Valkey: the memory of one primary", valkey_gb / assumed.valkey_gb),
            Share("PostgreSQL: connections", processes * _PROCESS_CONNECTIONS / assumed.connections),
            Share("PostgreSQL: cores", postgres_cores / assumed.busy / assumed.postgres_cores),
            Share("PostgreSQL: WAL", wal / assumed.postgres_wal),
            Share("PostgreSQL: memory for indexes", index_gb / assumed.postgres_gb),
            Share("PostgreSQL: disk", kept_tb / assumed.postgres_tb),
        ),
    )


def _kept_bytes(assumed: Assumptions, measured: Measured, calls: Mapping[str, float]) -> float:
    """Return how many bytes a user adds to PostgreSQL in a day."""
    stored = sum(count * measured.costs[name]["stored B"] for name, count in calls.items())
    return stored + assumed.turns * _added_text(assumed, measured)


def _added_text(assumed: Assumptions, measured: Measured) -> float:
    """Return by how many bytes the text of an assumed turn is longer than that of a measured one."""
    return assumed.turn_bytes - measured.deltas * _DELTA_CHARACTERS


def _index_bytes(assumed: Assumptions, measured: Measured) -> float:
    """Return the bytes of indexes that one daily user needs in memory."""
    turns = assumed.turns * assumed.kept_days
    of_turns = measured.index_bytes["conversation_records"] + measured.index_bytes["conversations"] * assumed.new
    of_user = sum(measured.index_bytes[name] for name in ("users", "identities", "sessions"))
    return turns * of_turns + of_user


def _valkey_bytes(streams: float, turns_per_s: float, assumed: Assumptions, measured: Measured) -> float:
    """Return the bytes in Valkey. A durable stream adds its events, so it adds more if there are more deltas."""
    plain, durable = measured.memory["turn"], measured.memory[DURABLE]
    added = assumed.durable * assumed.deltas / measured.deltas

    def of(column: str) -> float:
        return plain[column] + added * max(0.0, durable[column] - plain[column])

    return streams * of("while it runs") + turns_per_s * _ENDED_S * of("after its end")


def _client_bytes(assumed: Assumptions, measured: Measured, turns_per_s: float, spoken_per_s: float) -> float:
    scale = assumed.deltas / measured.deltas
    text = measured.costs[NEW]["to the client B"] * scale
    return turns_per_s * text + spoken_per_s * assumed.audio_bytes * _BASE64
