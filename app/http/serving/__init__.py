"""aiohttp's server with our limits on connections.

Clients cannot use up the file descriptors that vendors and stores need (`connections.py`). 1,000 descriptors are
reserved, or a quarter of all, if that is less. Half of the others is for connections of clients, because a stream
also needs a connection to its vendor. One timer per process closes all connections whose head is late.

A refused client gets an error response after the first bytes of its request. Its socket is read until the client
disconnects, because closing a socket with unread bytes resets the connection and loses the response.

The metrics port is served by a separate application without connection limits, so that monitoring works even if
clients use all connections. In production only this port serves `/metrics` and the API reference.
"""
