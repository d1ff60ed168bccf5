"""Users as operators see them: search, history, and what is done for them."""
