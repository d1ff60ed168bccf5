"""The other end of connections: clients, vendors, proxies, and their certificates."""
