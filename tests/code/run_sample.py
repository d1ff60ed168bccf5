"""Run the tests of the sample area in a copy of the code that it was added to: `python -m tests.code.run_sample`.

Arguments: the URL of a database of a development server, the URL of Valkey, and a folder for data.
"""

import sys
from importlib import import_module
from pathlib import Path

import uvloop

from app.http.rows.row_errors import UNLISTED
from app.services import open_services
from deploy.stores import Stores
from storage.postgres.migrate import migrate
from tests.environment import forget_settings
from tests.running.servers import listening_socket, running_server, settings_of


async def main(database_url: str, redis_url: str, data_dir: str) -> None:
    forget_settings()
    await migrate(database_url)
    with listening_socket() as listener:
        stores, port = Stores(database_url, redis_url), listener.getsockname()[1]
        settings = settings_of(stores, database_url, port, Path(data_dir))
        async with open_services(settings) as services, running_server(services, listener) as server:
            for name, test in vars(import_module("tests.app.test_postcards")).items():
                if name.startswith("test_"):
                    await test(server)
                    sys.stdout.write(f"passed {name}\n")
    assert not UNLISTED.collect()[0].samples, "an endpoint answered with an error that its row does not list"


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
