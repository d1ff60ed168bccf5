"""What the nodes of a Valkey Cluster have seen in a run of the tests."""

from hashlib import sha1

from deploy.valkey_cluster import ValkeyCluster
from storage.valkey import client


async def check_scripts(cluster: ValkeyCluster) -> None:
    """Fail unless all scripts have run."""
    files = sorted((client.LUA).glob("*.lua"))
    digests = [sha1(file.read_bytes(), usedforsecurity=False).hexdigest() for file in files]
    known = [await cluster.ask(node, "SCRIPT", "EXISTS", *digests) for node in cluster.nodes]
    missing = [file.stem for file, *nodes in zip(files, *known, strict=True) if not any(nodes)]
    assert not missing, f"scripts that no test has run with the cluster: {missing}"


async def check_slots(cluster: ValkeyCluster) -> None:
    """Fail if a script or command that was sent had keys in several slots. `tests/conftest.py` finds all others."""
    crossed = [
        line
        for node in cluster.nodes
        for line in await cluster.ask(node, "INFO", "errorstats")
        if "CROSSSLOT" in line
    ]
    assert not crossed, f"commands had keys in several slots: {crossed}"
