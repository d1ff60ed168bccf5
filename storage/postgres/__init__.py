"""PostgreSQL: the pool of connections, causes of its errors, notifications and migrations."""
