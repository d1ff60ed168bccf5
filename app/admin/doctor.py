"""The admin endpoint that shows the last report of `python -m app doctor`."""

from app.admin.area import FOR_VIEWERS
from app.http.rows.endpoint import Call, Endpoint
from storage.operators import doctor_reports
from storage.operators.doctor_reports import Report
from streams.wire.errors import ValkeyError, ValkeyUnavailable
from streams.wire.model import Model


class DoctorReply(Model):
    """The last report, if there is one."""

    report: Report | None = None
    """Absent if `python -m app doctor` has not run within 30 days."""


async def doctor_report(call: Call) -> DoctorReply:
    """Read the last report of `python -m app doctor`.

    The command checks the stores, vendors, mail servers and proxies of the deployment, and stores its report.
    """
    return DoctorReply(report=await doctor_reports.last(call.services.valkey))


DOCTOR_ROUTES = [
    Endpoint("GET", "/admin/api/doctor", doctor_report, FOR_VIEWERS, errors=(ValkeyError, ValkeyUnavailable))
]
