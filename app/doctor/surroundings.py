"""The environment of the checks: the settings, the stores that can be opened, and the clock of this machine."""

import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from app.settings import Settings
from storage.configs.store import ConfigStore


@dataclass(frozen=True, slots=True)
class Surroundings:
    settings: Settings
    configs: ConfigStore | None = None
    """The configs; `None` if they cannot be read."""
    unread: str = ""
    """Why the configs cannot be read."""
    wrong_master_key: bool = False
    """Whether the master key of the deployment is missing. Then the configs that need it are broken."""
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)
    clock: Callable[[], float] = time.time

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock(), UTC)
