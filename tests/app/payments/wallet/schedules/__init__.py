"""Random schedules of wallet payments, and what the books of the platform imply after each step."""
