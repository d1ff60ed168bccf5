"""Proxies of the environment are ignored, and logged."""

from dataclasses import replace

from structlog.testing import capture_logs

from app.services import open_services
from app.settings import Settings


async def test_ignored_proxy_of_the_environment_is_logged(settings: Settings):
    with capture_logs() as lines:
        async with open_services(replace(settings, ignored_proxies=("HTTPS_PROXY",))):
            pass
        async with open_services(settings):
            pass

    reported = [line for line in lines if line["event"] == "vendors.proxy_ignored"]
    assert [(line["log_level"], line["variables"]) for line in reported] == [("warning", ("HTTPS_PROXY",))]
