"""Groups of users: in a cluster, the keys of a user's streams share a slot with those of other users.

The script that admits a stream also checks whether its slot has the keys of all streams. A cluster loses keys by
slot, so that is recorded in each slot with such keys. Without groups, each process would do so in all 16,384 slots.
"""

from functools import cache
from zlib import crc32

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

_COUNT = 256
"""Enough to spread users evenly over dozens of primaries, and few enough to be set at once after a failover."""


class UserGroups:
    """The groups, each with a tag for its keys. The slots of the tags are spread evenly over all slots."""

    def __init__(self, count: int = _COUNT) -> None:
        by_band: dict[int, str] = {}
        number = 0
        while len(by_band) < count:
            tag = f"users-{number}"
            by_band.setdefault(key_slot(tag.encode()) * count // REDIS_CLUSTER_HASH_SLOTS, tag)
            number += 1
        self.tags = [tag for _, tag in sorted(by_band.items())]

    def tag_of(self, app_id: str, user_id: str) -> str:
        return self.tags[crc32(f"{app_id}:{user_id}".encode()) % len(self.tags)]


@cache
def user_groups() -> UserGroups:
    return UserGroups()
