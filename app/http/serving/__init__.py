"""aiohttp's server with our limits on connections."""
