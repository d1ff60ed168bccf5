"""The order of the API reference: groups by audience, and in each group a section per area or part of an area."""

from collections.abc import Sequence
from typing import Any

from app.http.callers.area import Area, Audience, Section
from app.http.callers.caller import Access
from app.http.paths import is_server_path
from app.http.rows.endpoint import Endpoint

_OF_SERVERS = "s2s_"
"""The beginning of the tags of S2S paths: an area has one section for client apps, and one for app servers."""
_BY_ACCESS = {Access.ADMIN: Audience.OPERATORS, Access.WEBHOOK: Audience.WEBHOOKS}
_OF_APP_SERVERS = "The user of the call is named in the path."


def tag_of(row: Endpoint, path: str) -> str:
    """Return the name of the section of one path of a row."""
    name = _section(row).name
    return f"{_OF_SERVERS}{name}" if is_server_path(path) else name


def tags(routes: Sequence[Endpoint]) -> list[dict[str, Any]]:
    """Return the sections that have endpoints, in the order of the reference."""
    found: dict[Audience, dict[str, dict[str, Any]]] = {audience: {} for audience in Audience}
    for row in routes:
        for path in row.paths:
            found[_audience(row.area, path)].setdefault(tag_of(row, path), _tag(row, path))
    return [tag for sections in found.values() for tag in sections.values()]


def tag_groups(routes: Sequence[Endpoint]) -> list[dict[str, Any]]:
    """Return the groups that have endpoints, with the names of their sections (`x-tagGroups`)."""
    found: dict[Audience, dict[str, None]] = {audience: {} for audience in Audience}
    for row in routes:
        for path in row.paths:
            found[_audience(row.area, path)][tag_of(row, path)] = None
    return [{"name": audience.value, "tags": [*names]} for audience, names in found.items() if names]


def _audience(area: Area, path: str) -> Audience:
    if is_server_path(path):
        return Audience.SERVERS
    return area.audience or _BY_ACCESS.get(area.access, Audience.APPS)


def _section(row: Endpoint) -> Section:
    area = row.area
    own = Section(area.group, area.title, area.description, paths=("",))
    return next(section for section in (*area.sections, own) if row.path.startswith(section.paths))


def _tag(row: Endpoint, path: str) -> dict[str, Any]:
    section = _section(row)
    s2s = path == row.server_path
    description = f"{section.description} {_OF_APP_SERVERS}" if s2s else section.description
    return {"name": tag_of(row, path), "x-displayName": section.title, "description": description}
