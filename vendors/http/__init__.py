"""HTTP and WebSocket calls to vendors: connections, errors and retries."""
