"""A replica that lags behind its primary and takes over from it, so that the last writes are lost."""

from deploy.valkey_cluster import ClusterNode, ValkeyCluster
from tests.waiting import until


async def cut_off(cluster: ValkeyCluster, primary: ClusterNode) -> ClusterNode:
    """Break the connection of a primary's replica, and let it open no other. Returns the replica."""
    name = (await cluster.ask(primary, "CLUSTER", "MYID")).decode()
    replica = await cluster.replica_of(name)
    await cluster.ask(primary, "ACL", "SETUSER", "default", "-psync", "-sync")
    await cluster.ask(primary, "CLIENT", "KILL", "TYPE", "REPLICA")
    return replica


async def take_over(cluster: ValkeyCluster, replica: ClusterNode, primary: ClusterNode) -> None:
    """Replace the primary, which runs on. Returns when it has become a replica."""
    await cluster.ask(replica, "CLUSTER", "FAILOVER", "TAKEOVER")

    async def is_replica() -> bool:
        return bool((await cluster.ask(primary, "ROLE"))[0] == b"slave")

    await until(is_replica)
