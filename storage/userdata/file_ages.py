"""The files of an app that are deleted at a fixed age, so that a bucket can delete them by itself.

The others have no fixed age: audio of conversations is deleted with its conversation, cached speech some time after
its last use. Files with the winners of leaderboards are kept.
"""

from contextlib import suppress

from storage.configs.kinds.limits import LIMITS, Limits
from storage.configs.store import ConfigStore
from storage.conversations.speech_files import days_folder
from storage.objects.lifecycle import Expiry
from storage.tasks import task_files
from storage.userdata import exports
from streams.wire.errors import ConfigInvalid

KEPT_FOLDERS = ("conversation/", "speech-cache/", "leaderboards/")
"""The folders of files that have no fixed age. A bucket must not delete them."""


def speech(app_id: str, limits: Limits) -> Expiry:
    return Expiry(days_folder(app_id), limits.speech_days)


def files_of_tasks(app_id: str, limits: Limits) -> list[Expiry]:
    return [Expiry(folder, limits.task_days) for folder in task_files.folders_of_app(app_id)]


def all_files(app_id: str, limits: Limits) -> list[Expiry]:
    """Return all files of an app that are deleted at a fixed age, usually the most numerous ones first."""
    export = Expiry(exports.folder(app_id), limits.export_days)
    return [speech(app_id, limits), *files_of_tasks(app_id, limits), export]


async def of_all_apps(configs: ConfigStore) -> list[Expiry]:
    """Return the files of all apps that have ever existed, except those whose limits are broken."""
    found = []
    for app_id in await configs.all_apps():
        with suppress(ConfigInvalid):
            found.append(all_files(app_id, configs.singleton(LIMITS, app_id)))
    return [expiry for one_kind in zip(*found, strict=True) for expiry in one_kind]
