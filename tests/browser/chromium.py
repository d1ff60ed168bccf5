"""Headless Chromium. Its microphone plays a file, and it resolves no host names except that of this machine."""

import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, async_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_DISABLED_FEATURES = (
    # Playwright's own list, which this one replaces.
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades"),
    *("HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding"),
    *("ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints"),
    *("NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch"),
    # The popup of the address bar is a page too. Every browser context would load it, in 0.6 s of CPU.
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup"),
)
_FLAGS = (
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-extensions"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--use-fake-device-for-media-stream",
    f"--disable-features={','.join(_DISABLED_FEATURES)}",
)


def chromium_path() -> str:
    """Return the path of Chromium. Fails the test if it is not installed."""
    for name in _NAMES:
        if path := shutil.which(name):
            return path
    pytest.fail("Chromium is not installed (Debian: apt-get install chromium)", pytrace=False)


@asynccontextmanager
async def running_chromium(microphone: Path, *, again: bool = False) -> AsyncIterator[Browser]:
    """Run Chromium. The WAV file `microphone` is played whenever a page opens the microphone, once or `again`."""
    played = str(microphone) if again else f"{microphone}%noloop"
    as_root = ("--no-sandbox",) if sys.platform == "linux" and os.geteuid() == 0 else ()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium_path(),
            headless=True,
            args=[*_FLAGS, *as_root, f"--use-file-for-fake-audio-capture={played}"],
        )
        try:
            yield browser
        finally:
            await browser.close()
