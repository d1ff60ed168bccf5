"""Users as operators see them: search, history, and changes on their behalf."""
