"""The jobs that erase what deactivated users have stored, and revoke their tokens at sign-in platforms."""

from datetime import timedelta
from functools import partial

import structlog

from app.services import Services
from storage.configs.kinds.limits import LIMITS
from storage.conversations import continuations, deletion
from storage.conversations.speech_files import days_folder
from storage.leaderboards import leaderboards
from storage.postgres.batches import delete_in_batches
from storage.tasks import task_files
from storage.userdata import erasures
from storage.userdata.erasures import EraseUser, RevocationState, RevokeToken
from storage.userdata.retention import delete_folder
from vendors.signin.protocols import Revokes

log = structlog.get_logger()

_BATCH_SIZE = 100
_LOOK_AGAIN_S = 10
_MARGIN_S = 60


async def erase_user(services: Services, job: EraseUser) -> None:
    """Delete the conversations of a deactivated user, and the files of its text-to-speech streams.

    Streams that an app's server has started may still be running, so conversations with a running turn are deleted
    after that. The job runs a second time, when every stream that began before the deactivation must have ended.
    Only then is the erasure complete, because a stream stores its audio when it ends.
    """
    app_id, uid, now = job.app_id, job.uid, services.clock.now(job.app_id)
    longest_s = services.configs.singleton(LIMITS, app_id).stream_s + _MARGIN_S
    delete = partial(
        deletion.delete_of_user, app_id=app_id, uid=uid, running_since=now - timedelta(seconds=longest_s)
    )
    await continuations.remove_of_user(services.valkey, app_id, uid)
    await _delete_scores(services, app_id, uid)  # Scores are deleted first, because other users see them.
    conversations = await delete_in_batches(services.database, delete, size=_BATCH_SIZE)
    files = await _delete_files(services, app_id, uid)
    async with services.database.transaction() as conn:
        left = await deletion.has_conversations(conn, app_id, uid)
        erased_at = now if job.last and not left else None
        await erasures.record_erased(conn, job, conversations=conversations, files=files, erased_at=erased_at)
        if left:
            await erasures.erase_later(conn, job, in_s=_LOOK_AGAIN_S)
        elif not job.last:
            again = EraseUser(app_id=app_id, uid=uid, last=True)
            await erasures.erase_later(conn, again, in_s=longest_s)
    log.info("user.erased", app_id=app_id, conversations=conversations, files=files, left=left)


async def _delete_files(services: Services, app_id: str, uid: str) -> int:
    days = await services.objects.folders(days_folder(app_id))
    folders = [*(f"{day}{uid}/" for day in days), *task_files.folders_of(app_id, uid)]
    return sum([await delete_folder(services.objects, folder) for folder in folders])


async def _delete_scores(services: Services, app_id: str, uid: str) -> None:
    """Delete scores that were stored during the deactivation, and the user from the indexes of boards."""
    async with services.database.transaction() as conn:
        periods = await leaderboards.erase(conn, app_id, uid)
    for period in periods:
        await services.boards.remove(period, uid=uid)


async def revoke_token(services: Services, job: RevokeToken) -> None:
    """Revoke the token of an identity that a deactivated user had, if its platform can do so."""
    async with services.database.connection() as conn:
        token = await erasures.pending_token(conn, job, keyring=services.keyring)
    if token is None:
        return
    client = services.sign_in.open(job.app_id, job.platform)
    provider = client.sign_in
    state: RevocationState = "unsupported"
    if isinstance(provider, Revokes):
        await client.call(lambda _: provider.revoke(token))
        state = "revoked"
    async with services.database.connection() as conn:
        await erasures.settle_revocation(conn, job, state=state, now=services.clock.now(job.app_id))
