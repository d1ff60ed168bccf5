"""The emulation of all vendors and platforms at a socket, for development servers and tests."""
