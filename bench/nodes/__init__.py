"""Replaces, kills and cuts off nodes under load, and checks that no stream is lost or answered twice.

The nodes, their stores and the proxy are in network namespaces of one machine (`network.py`). So each node has
sockets and addresses of its own, and can be cut off from a store without being told: packets are dropped, as when
a cable is pulled or a firewall forgets a connection. A proxy that stops reading would still acknowledge packets,
and no error of the kernel would be seen.
"""
