"""Rules for the code that tests check by reading it."""
