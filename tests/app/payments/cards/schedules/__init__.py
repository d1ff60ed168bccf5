"""Random schedules of card payments, and what the platform implies after each step."""
