"""Admin API of emails, predictions and image tasks: their lists, and the preview of an email."""

from typing import Any

from pydantic import Field

from app.admin.area import FOR_EDITORS, FOR_VIEWERS
from app.admin.configs.drafts import check_draft
from app.admin.reasons import origin_with_reason
from app.http.paging import IdCursor, Page, SortedQuery, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Body, Path, Query
from app.http.rows.replies import Empty
from app.http.rows.transactions import Transaction
from app.mail_templates import Rendered, content_of, names_in, rendered
from storage.configs.kinds.apps import APPS
from storage.configs.kinds.mail import MAIL, MailStrategy
from storage.configs.rows import ConfigKey
from storage.errors import UnknownApp
from storage.jobs.jobs import enqueue
from storage.mail import engagement_lists
from storage.mail.addresses import fault_of, normalized
from storage.mail.engagement_lists import Filter, ListedTask, TaskKind
from storage.mail.mail import SendMail
from storage.operators import audit
from storage.operators.audit import Subject
from streams.wire.codec import rfc3339
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model

_READER = "reader@example.com"
"""The address of the reader in a preview."""


class SentQuery(SortedQuery[IdCursor]):
    app: str | None = None
    """List only those of this app."""
    strategy: str | None = Field(default=None, max_length=128)
    """List only those of this strategy."""
    status: str | None = Field(default=None, max_length=64)
    """List only those with this status."""


class MailRow(Model):
    mail_id: str
    app: str
    user_id: str
    strategy: str
    status: str
    """`sending`, `waiting` for a further attempt, `sent`, `refused` or `suppressed`."""
    created_at: str
    sent_at: str | None = None
    opens: int
    """By readers."""
    machine_opens: int
    """By programs."""


class StrategyMails(Page[str]):
    """A page of the emails."""

    mails: list[MailRow]


class TaskRow(Model):
    task_id: str
    app: str
    user_id: str
    strategy: str
    account: str
    """The vendor account that was called."""
    what: str | None = None
    """The model of a prediction, if its own endpoint is called, or the type of an image task."""
    host_id: str | None = None
    """The id at the host, once it is known."""
    status: str
    error: str
    created_at: str
    ended_at: str | None = None


class TaskList(Page[str]):
    """A page of the tasks."""

    tasks: list[TaskRow]


class PreviewPath(Model):
    app: str
    """An app of this server."""
    strategy: str
    """The name of a config of kind `mail`, which need not be stored."""


class PreviewBody(Model):
    value: dict[str, Any]
    """The config to preview."""
    variables: dict[str, Any] = Field(default_factory=dict)
    """The values of `{{.CustomVariables.…}}`."""


class TestMailBody(PreviewBody):
    to: str = Field(max_length=320)
    """The address that gets the email."""


class Preview(Model):
    """The subject and both bodies of the email, with the variables that it names."""

    subject: str
    text: str
    html: str
    variables: list[str]
    """The names of the variables that the templates show."""


async def list_mails(call: Call, query: Query[SentQuery]) -> StrategyMails:
    """List the emails of strategies, without their contents.

    The newest comes first.
    """
    found = await call.services.reads.read(
        lambda conn: engagement_lists.mails(
            conn, _filter(query), oldest_first=query.oldest_first, before=query.before, size=query.size + 1
        )
    )
    page, further = page_of(found, query.size, lambda mail: mail.mail_id)
    rows = [
        MailRow(
            mail_id=mail.mail_id,
            app=mail.app_id,
            user_id=mail.uid,
            strategy=mail.strategy,
            status=mail.status,
            created_at=rfc3339(mail.created_at),
            sent_at=None if mail.sent_at is None else rfc3339(mail.sent_at),
            opens=mail.opens,
            machine_opens=mail.machine_opens,
        )
        for mail in page
    ]
    return StrategyMails(next=further, mails=rows)


async def list_predictions(call: Call, query: Query[SentQuery]) -> TaskList:
    """List predictions at model hosts, without their inputs.

    The newest comes first.
    """
    return await _tasks(call, query, "prediction")


async def list_image_tasks(call: Call, query: Query[SentQuery]) -> TaskList:
    """List image tasks, without their prompts.

    The newest comes first.
    """
    return await _tasks(call, query, "image")


async def preview_mail(call: Call, path: Path[PreviewPath], body: Body[PreviewBody]) -> Preview:
    """Render an email from a config that need not be stored.

    Nothing is sent.
    """
    strategy, email = await _render(call, path, body, to=_READER)
    return Preview(subject=email.subject, text=email.text, html=email.html, variables=sorted(names_in(strategy)))


async def send_test(
    call: Call, transaction: Transaction, path: Path[PreviewPath], body: Body[TestMailBody]
) -> Empty:
    """Send an email from a config that need not be stored.

    It goes to one address. It is not listed with the emails of the strategy, does not count towards its limits, and
    has no link to unsubscribe. The header `X-Parley-Reason` is required.
    """
    origin = origin_with_reason(call)
    to = normalized(body.to, development=call.services.settings.development)
    if to is None:
        raise InvalidParameter(f"to {fault_of(body.to, development=call.services.settings.development)}")
    strategy, email = await _render(call, path, body, to=to)
    content = content_of(strategy, email, to=to)
    async with transaction.begin() as conn:
        await enqueue(conn, SendMail.seal(path.app, content, keyring=call.services.keyring))
        subject = Subject(path.app, MAIL.name, path.strategy)
        await audit.record_change(conn, origin, action="mail.test", subject=subject)
        return transaction.answer(Empty())


async def _render(call: Call, path: PreviewPath, body: PreviewBody, *, to: str) -> tuple[MailStrategy, Rendered]:
    """Return a config, validated like one to be written, and the email that it produces."""
    await check_draft(call, ConfigKey(path.app, MAIL.name, path.strategy), body.value)
    strategy = MailStrategy.model_validate(body.value)
    app = call.services.configs.singleton(APPS, path.app).title or path.app
    values = {"App": app, "Email": to, "CustomVariables": body.variables}
    return strategy, rendered(strategy, values)


def _filter(query: SentQuery) -> Filter:
    return Filter(query.app, query.strategy, query.status)


async def _tasks(call: Call, query: SentQuery, kind: TaskKind) -> TaskList:
    found = await call.services.reads.read(
        lambda conn: engagement_lists.tasks(
            conn,
            _filter(query),
            kind=kind,
            oldest_first=query.oldest_first,
            before=query.before,
            size=query.size + 1,
        )
    )
    page, further = page_of(found, query.size, lambda task: task.task_id)
    return TaskList(next=further, tasks=[_row(task) for task in page])


def _row(task: ListedTask) -> TaskRow:
    return TaskRow(
        task_id=task.task_id,
        app=task.app_id,
        user_id=task.uid,
        strategy=task.strategy,
        account=task.account,
        what=task.what,
        host_id=task.host_id,
        status=task.status,
        error=task.error,
        created_at=rfc3339(task.created_at),
        ended_at=None if task.ended_at is None else rfc3339(task.ended_at),
    )


ENGAGEMENT_ROUTES = [
    Endpoint("GET", "/admin/api/mails", list_mails, FOR_VIEWERS),
    Endpoint("GET", "/admin/api/predictions", list_predictions, FOR_VIEWERS),
    Endpoint("GET", "/admin/api/image_tasks", list_image_tasks, FOR_VIEWERS),
    Endpoint("POST", "/admin/api/mails/{app}/{strategy}/preview", preview_mail, FOR_EDITORS, errors=(UnknownApp,)),
    Endpoint("POST", "/admin/api/mails/{app}/{strategy}/test", send_test, FOR_EDITORS, errors=(UnknownApp,)),
]
