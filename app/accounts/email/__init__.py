"""Email addresses: logins with them, their verification, and new passwords by email."""
