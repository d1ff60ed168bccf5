"""Wiring: opens all long-lived objects of the server, and closes them in reverse order."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import structlog
from aiohttp import web

from actors.clients.sign_in import SignInClients
from actors.clients.strategies import Strategies
from actors.clients.vendor_clients import VendorClients
from actors.plays.takeover import Takeovers, open_takeovers
from actors.runtime.admission import AdmissionControl
from actors.runtime.context import Resources
from actors.runtime.relay import Relay, open_relay
from actors.runtime.session_watch import open_session_watch
from actors.runtime.supervisor import Supervisor, ending
from actors.synthesis.flight import Flights
from app.environment import SettingsError
from app.observing.stored_figures import StoredFigures
from app.observing.telemetry import Traces, open_traces
from app.password_hashing import PasswordHashes, open_password_hashes
from app.settings import Settings
from app.stores import Stores, open_stores
from storage.accounts.codes import Codes
from storage.accounts.session_cache import SessionCache
from storage.conversations.admission import Admissions, open_admissions
from storage.conversations.dead_turns import DeadTurns
from storage.conversations.retry_queue import open_retry_queue
from storage.conversations.speech_cache import SpeechCache
from storage.conversations.speech_sweep import open_speech_sweep
from storage.conversations.turns import CONNECTIONS, LOCKED_S, USUAL_CONNECTIONS, TurnWriter, open_turn_writer
from storage.events.outbox import EventSinks
from storage.leaderboards.creations import BoardCreations
from storage.leaderboards.index import BoardIndexes, open_board_indexes
from storage.limits import RateLimiter
from storage.mail.opens import MailOpens, open_mail_opens
from storage.objects import ObjectStore, open_objects
from storage.objects.contract import ObjectsRefused
from storage.operators.tokens import OperatorTokens
from storage.postgres.database import Database, open_database
from storage.postgres.reads import Reads, open_reads
from storage.processes.heartbeats import Heartbeat, open_heartbeat
from streams.keyed_lock import KeyedLock
from streams.wire.ids import new_id
from vendors.geo.files import GeoFiles, open_geo_files
from vendors.http.client import open_vendor_http
from vendors.local_engines import open_local_engines
from vendors.speech.conversion import open_audio_converter
from vendors.speech.voice_activity import VoiceActivity, open_voice_activity

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Services(Stores):
    """The long-lived objects of a server process."""

    objects: ObjectStore
    limiter: RateLimiter
    operator_tokens: OperatorTokens
    passwords: PasswordHashes
    codes: Codes
    sinks: EventSinks
    vendors: VendorClients
    """The clients of vendor accounts, for any area."""
    sign_in: SignInClients
    logins: KeyedLock
    """Locks an identity while it logs in or signs up."""
    strategies: Strategies
    supervisor: Supervisor
    sessions: SessionCache
    admissions: Admissions
    admission_control: AdmissionControl
    takeovers: Takeovers
    heartbeat: Heartbeat
    turns: TurnWriter
    relay: Relay
    speech_cache: SpeechCache
    flights: Flights
    traces: Traces | None
    reads: Reads
    """Reads for operators, which a replica executes if there is one."""
    stored_figures: StoredFigures
    """Figures from PostgreSQL that the overview for operators shows."""
    geo: GeoFiles
    boards: BoardIndexes
    board_creations: BoardCreations
    opens: MailOpens
    voice_activity: VoiceActivity
    resources: Resources
    """The services that plays use."""

    def readiness_checks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return the checks of `/readyz` by name. A check raises an error if its part is not ready."""
        return {
            "postgres": self.database.ping,
            "valkey": self.heartbeat.check_valkey,
            "configs": self.configs.ping,
            "secrets": self.configs.check_secrets,
            "objects": self.objects.ping,
        }


SERVICES: web.AppKey[Services] = web.AppKey("services", Services)


async def _objects(stack: AsyncExitStack, stores: Stores) -> ObjectStore:
    settings = stores.settings
    folder = settings.data_dir / "objects"
    opened = open_objects(
        folder=folder,
        bucket=settings.s3_bucket,
        endpoint_url=settings.s3_endpoint_url,
        public_url=settings.public_url,
        keyring=stores.keyring,
    )
    try:
        return await stack.enter_async_context(opened)
    except ObjectsRefused as error:
        if settings.s3_bucket is not None or not isinstance(error.__cause__, OSError):
            raise
        cause = (error.__cause__.strerror or "unknown error").lower()
        raise SettingsError(f"parley: PARLEY_DATA_DIR: cannot write to {folder}: {cause}") from None


def _turn_database(settings: Settings, database: Database) -> AbstractAsyncContextManager[Database]:
    """Return the connection pool of the turn writer, whose writes do not wait for other users of the database."""
    return open_database(
        settings.database_url,
        min_size=USUAL_CONNECTIONS,
        max_size=CONNECTIONS,
        lock_timeout_s=LOCKED_S,
        health=database.health,
        pooled=settings.is_pooled,
    )


def _warn_about_variables(settings: Settings) -> None:
    """Log the environment variables that have no effect."""
    for name, nearest in settings.unknown_variables:
        hint = "the server does not read it" if nearest is None else f"did you mean {nearest}?"
        log.warning("settings.unknown_variable", variable=name, hint=hint)
    if settings.ignored_proxies:
        log.warning("vendors.proxy_ignored", variables=settings.ignored_proxies)


async def _turns(stack: AsyncExitStack, stores: Stores, heartbeat: Heartbeat) -> TurnWriter:
    database, clock = stores.database, stores.clock
    turn_database = await stack.enter_async_context(_turn_database(stores.settings, database))
    dead_turns = DeadTurns(database, heartbeat, clock)
    return await stack.enter_async_context(open_turn_writer(turn_database, dead_turns, clock))


@asynccontextmanager
async def open_services(settings: Settings, *, process: str | None = None) -> AsyncIterator[Services]:
    """Open all services for the duration of the block. `process`: the id of this process, if it has one already."""
    async with AsyncExitStack() as stack:
        _warn_about_variables(settings)
        stores = await stack.enter_async_context(open_stores(settings, of_process=True))
        database, valkey, configs, clock = stores.database, stores.valkey, stores.configs, stores.clock
        objects = await _objects(stack, stores)
        http = await stack.enter_async_context(
            open_vendor_http(idle_s=settings.vendor_idle_s, dns_servers=settings.dns_servers)
        )
        engines = await stack.enter_async_context(open_local_engines(http, settings.local_url))
        passwords = await stack.enter_async_context(open_password_hashes())
        converter = await stack.enter_async_context(open_audio_converter())
        voice_activity = await stack.enter_async_context(open_voice_activity(settings.turn_listeners))
        await stack.enter_async_context(open_retry_queue(database, valkey))
        await stack.enter_async_context(open_speech_sweep(valkey, objects))
        traces = await stack.enter_async_context(open_traces(settings.traces_url))
        copies_folder = settings.data_dir if settings.s3_bucket is None else None
        geo = await stack.enter_async_context(open_geo_files(copies_folder))
        reads = await stack.enter_async_context(open_reads(database, settings.database_replica_url))
        boards = await stack.enter_async_context(open_board_indexes(database, valkey))
        sinks = EventSinks(configs)
        opens = await stack.enter_async_context(open_mail_opens(database, sinks, clock, stores.keyring))
        supervisor = Supervisor()
        heartbeat = await stack.enter_async_context(
            open_heartbeat(valkey, database, process or new_id(), lambda: supervisor.by_app)
        )
        turns = await _turns(stack, stores, heartbeat)
        admissions = await stack.enter_async_context(open_admissions(valkey, heartbeat))
        relay = await stack.enter_async_context(open_relay(valkey, heartbeat, supervisor))
        sessions = SessionCache(valkey)
        await stack.enter_async_context(
            open_session_watch(database, valkey, supervisor, sessions, dsn=settings.direct_url)
        )
        await stack.enter_async_context(ending(supervisor))
        vendors = VendorClients(configs, http, engines, local_url=settings.local_url)
        strategies = Strategies(configs, vendors)
        flights = Flights(speech_cache := SpeechCache(valkey))
        resources = Resources(
            database, objects, strategies, valkey, speech_cache, flights, heartbeat, turns, converter, clock,
            traces, tells_config_faults=settings.development,
        )  # fmt: skip
        control = AdmissionControl(resources, supervisor, admissions, relay)
        taking_over = open_takeovers(resources, supervisor, admissions, control, configs)
        yield Services(
            settings=settings,
            database=database,
            valkey=valkey,
            keyring=stores.keyring,
            configs=configs,
            clock=clock,
            objects=objects,
            limiter=RateLimiter(valkey),
            operator_tokens=OperatorTokens(database),
            passwords=passwords,
            codes=Codes(database, stores.keyring),
            sinks=sinks,
            vendors=vendors,
            sign_in=SignInClients(configs, vendors, sandbox_url=settings.sandbox_url),
            logins=KeyedLock(),
            strategies=strategies,
            supervisor=supervisor,
            sessions=sessions,
            admissions=admissions,
            admission_control=control,
            takeovers=await stack.enter_async_context(taking_over),
            heartbeat=heartbeat,
            turns=turns,
            relay=relay,
            speech_cache=speech_cache,
            flights=flights,
            traces=traces,
            reads=reads,
            stored_figures=StoredFigures(reads, configs),
            geo=geo,
            boards=boards,
            board_creations=BoardCreations(database),
            opens=opens,
            voice_activity=voice_activity,
            resources=resources,
        )
