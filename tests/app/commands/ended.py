"""A command in a process of its own, until it ends."""

from app.settings import Settings
from tests.environment import core_packages
from tests.running.forks import run
from tests.running.servers import ADMIN_TOKEN, MASTER_KEY


async def ended(settings: Settings, variables: dict[str, str], *arguments: str) -> tuple[int, str, str]:
    """Run `python -m app` with variables of the environment. Return the exit code, standard output and error."""
    env = {
        **core_packages(),
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
        "PARLEY_REDIS_PREFIX": settings.redis_prefix,
        "PARLEY_MASTER_KEY": MASTER_KEY,
        "PARLEY_ADMIN_TOKEN": ADMIN_TOKEN,
        "PARLEY_DATA_DIR": str(settings.data_dir),
        "PORT": str(settings.port),
    }
    return await run("app", *arguments, env=env | variables)
