"""A Valkey Cluster of three primaries and three replicas, which the servers of these tests use."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.settings import Settings
from deploy.valkey_cluster import ValkeyCluster, valkey_cluster


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ValkeyCluster]:
    async with valkey_cluster(tmp_path / "cluster", node_timeout_ms=1_000) as running:
        yield running


@pytest.fixture
def settings(settings: Settings, cluster: ValkeyCluster) -> Settings:
    return replace(settings, redis_url=cluster.url)
