"""What only the server of an app does: calls for its users, and events that it receives."""
