"""Assets of users, and share groups: their endpoints, and the grants of purchased products."""
