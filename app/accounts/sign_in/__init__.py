"""How users get in: the sign-in platforms, login and signup."""
