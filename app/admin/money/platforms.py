"""The admin API for the vendor catalog: the platforms and the options of their strategies."""

from functools import cache
from typing import Any

from app.admin.area import FOR_VIEWERS
from app.http.rows.endpoint import Call, Endpoint
from streams.wire.model import Model
from vendors.catalog import CAPABILITIES, CATALOG


class PlatformRow(Model):
    platform: str
    """The id, which configs store and interfaces use."""
    aliases: list[str]
    """Other names that are accepted when an account is written."""
    base_url: str | None = None
    """The public address. Absent if an account must name one, and for the engines of this machine."""
    local: bool
    """Whether the engines of this machine provide it."""
    options: dict[str, dict[str, Any]]
    """JSON Schema of the `options` of a strategy, by capability: `chat`, `recognition`, `speech`, `assessment`."""


class PlatformsReply(Model):
    """The platforms of vendors, with the options of their strategies."""

    platforms: list[PlatformRow]


async def platforms(call: Call) -> PlatformsReply:
    """List the vendor platforms and the options of their strategies.

    A vendor account may be written with an alias in place of the id: `openai` is `vendor_b_llm`, `openai_audio` is
    `vendor_b_audio`, `azure` is `vendor_a_audio`, `elevenlabs` is `vendor_c`, `google` is `vendor_d_audio`,
    `replicate` is `model_host`, and `midjourney` is `image_host`. The id is stored.
    """
    return _catalog()


@cache
def _catalog() -> PlatformsReply:
    return PlatformsReply(
        platforms=[
            PlatformRow(
                platform=platform,
                aliases=list(entry.aliases),
                base_url=entry.base_url,
                local=entry.local,
                options={
                    capability.name: capability.vendors[platform].options.model_json_schema()
                    for capability in CAPABILITIES
                    if platform in capability.vendors
                },
            )
            for platform, entry in CATALOG.items()
        ]
    )


PLATFORM_ROUTES = [Endpoint("GET", "/admin/api/platforms", platforms, FOR_VIEWERS)]
