"""An HTTP/1.1 client that pushes the bytes of each read to the reader immediately.

Vendors are called by this client, a pooled protocol over `httptools`. Compared with aiohttp's client, a call costs
half, and a delta a quarter to a half less. `python -m bench.http1` measures it. aiohttp's client is used for
WebSockets. Proxies of the environment are ignored, which `vendors.proxy_ignored` logs at start-up.
"""
