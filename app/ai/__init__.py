"""Conversations, speech, pronunciation and images."""
