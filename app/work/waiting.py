"""The gauges of what waits for a platform or a mail server, whether or not attempts have failed meanwhile."""

from prometheus_client import Gauge

from app.services import Services
from storage.jobs.jobs import WorkWebhook
from storage.jobs.waiting import waiting
from storage.mail.mail import SendMail

_GAUGES = {
    WorkWebhook.task: (
        Gauge("parley_webhooks_waiting", "Stored webhooks that are not processed yet"),
        Gauge("parley_webhooks_oldest_seconds", "Seconds since the oldest of them was stored"),
    ),
    SendMail.task: (
        Gauge("parley_mails_waiting", "Emails that no mail server has accepted yet"),
        Gauge("parley_mails_oldest_seconds", "Seconds since the oldest of them was stored"),
    ),
}


async def measure_waiting(services: Services) -> None:
    """Update the gauges. Raises `StoreError`."""
    async with services.database.connection() as conn:
        found = await waiting(conn, _GAUGES)
    for task, (jobs, oldest_s) in found.items():
        waits, oldest = _GAUGES[task]
        waits.set(jobs)
        oldest.set(oldest_s)
