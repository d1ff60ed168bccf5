"""The emulation of OpenAI."""
