"""Synthesized speech: its attempts, one synthesis for several streams, and its storage and replay."""
