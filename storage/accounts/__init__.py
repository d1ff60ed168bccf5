"""Users: their identities, addresses, passwords, codes and sessions."""
