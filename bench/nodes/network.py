"""The network of the nodes: namespaces that are joined by bridges. No packet leaves this machine.

Everything is in a namespace of its own (`inside_namespace`), which has no other interface than these, and vanishes
with its last process. Each node has an interface in each of `NETS`, whose other end is a port of the net's bridge.
While the port is not part of the bridge, the kernel drops all packets that arrive there, because they are for the
address of the bridge.
"""

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Literal

from deploy.running import Failed

Net = Literal["clients", "valkey", "postgres"]
NETS: dict[Net, str] = {"clients": "10.213.0", "valkey": "10.213.1", "postgres": "10.213.2"}
_CLONE_NEWNET = 0x40000000
_INSIDE = "--in-namespace"


def inside_namespace(arguments: Sequence[str]) -> list[str]:
    """Return the arguments, but only in a network namespace of this program: elsewhere, execute it anew in one."""
    if arguments[:1] == [_INSIDE]:
        return list(arguments[1:])
    if sys.platform != "linux" or os.geteuid() != 0:
        raise Failed("only root can create network namespaces, and only on Linux")
    command = ["unshare", "--net", "--", sys.executable, "-m", "bench.nodes", _INSIDE, *arguments]
    sys.stdout.flush()
    return os.execvp(command[0], command)  # noqa: S606 - the same program with the same arguments


def hub(net: Net) -> str:
    """Return the address at which nodes reach the stores, the vendor and the proxy in a net."""
    return f"{NETS[net]}.1"


def address(net: Net, node: int) -> str:
    return f"{NETS[net]}.{node + 11}"


class Network:
    """Creates the bridges and the namespaces of `nodes` nodes. The namespaces are kept by file descriptors."""

    def __init__(self, nodes: int) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._namespaces = [self._new_namespace() for _ in range(nodes)]
        _ip("link set lo up")
        for number, net in enumerate(NETS):
            mac = _mac(number, 0)
            _ip(
                f"link add b{number} address {mac} type bridge",
                f"addr add {hub(net)}/24 dev b{number}",
                f"link set b{number} up",
            )
        for node, namespace in enumerate(self._namespaces):
            path = f"/proc/{os.getpid()}/fd/{namespace}"
            _ip("link set lo up", inside=path)
            for number, net in enumerate(NETS):
                self._join(node, number, net, path)

    def enter(self, node: int) -> Callable[[], None]:
        """Return a function that moves a new process into the namespace of a node."""
        setns, namespace = self._libc.setns, self._namespaces[node]

        def move() -> None:
            if setns(namespace, _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")

        return move

    def cut(self, node: int, net: Net) -> None:
        """Drop all packets between a node and a net."""
        _ip(f"link set {_port(list(NETS).index(net), node)} nomaster")

    def heal(self, node: int, net: Net) -> None:
        number = list(NETS).index(net)
        _ip(f"link set {_port(number, node)} master b{number}")

    def _new_namespace(self) -> int:
        """Return a file descriptor of a new namespace, which a thread enters."""
        made: list[int] = []

        def make() -> None:
            if self._libc.unshare(_CLONE_NEWNET) == 0:
                made.append(os.open(f"/proc/self/task/{threading.get_native_id()}/ns/net", os.O_RDONLY))

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        if not made:
            raise Failed("no network namespace can be created")
        return made[0]

    def _join(self, node: int, number: int, net: Net, path: str) -> None:
        """Give a node an interface in a net.

        Neighbours are permanent: otherwise the kernel would report a cut after some seconds.
        """
        port, own, mac = _port(number, node), f"n{number}", _mac(number, node + 1)
        _ip(
            f"link add {port} type veth peer name {own} address {mac} netns {path}",
            f"link set {port} master b{number} up",
            f"neigh replace {address(net, node)} lladdr {mac} dev b{number} nud permanent",
        )
        _ip(
            f"addr add {address(net, node)}/24 dev {own}",
            f"link set {own} up",
            f"neigh replace {hub(net)} lladdr {_mac(number, 0)} dev {own} nud permanent",
            inside=path,
        )


def _port(number: int, node: int) -> str:
    return f"p{number}n{node}"


def _mac(number: int, host: int) -> str:
    return f"02:00:00:00:{number:02x}:{host:02x}"


def _ip(*commands: str, inside: str = "") -> None:
    entered = ["nsenter", f"--net={inside}", "--"] if inside else []
    done = subprocess.run(
        [*entered, "ip", "-batch", "-"], input="\n".join(commands), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise Failed(f"ip: {done.stderr.strip()}")
