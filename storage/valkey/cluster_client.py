"""redis-py's client of a cluster, whose commands take the way of `ClusterPipeline` where that is possible.

redis-py finds out about a failed node by itself, and only when a command fails: the first one of each idle process
would fail long after a replica has taken over.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from redis.asyncio import RedisCluster

_PIPELINED = frozenset(
    {"EXPIRE", "GET", "HDEL", "HGETALL", "LINDEX", "LREM", "MGET", "RPUSH", "SET"}
    | {"XRANGE", "XREVRANGE", "XTRIM", "ZMSCORE", "ZREM"}
)
"""Commands whose first argument is a key. A command of several keys is not split: they must be in one slot."""


class PipelinedCluster(RedisCluster):
    """Sends the commands in `_PIPELINED` with `call`, and all others itself."""

    def __init__(self, call: Callable[..., Awaitable[Any]], **options: Any) -> None:
        super().__init__(**options)
        self._call = call

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        if args[0] not in _PIPELINED:
            return await super().execute_command(*args, **options)
        answer = await self._call(*args)
        options.pop("keys", None)  # redis-py passes the keys for its cache of answers.
        parse = self.response_callbacks.get(args[0])
        return parse(answer, **options) if parse else answer
