"""Compare detectors of voices for conversation without hands in a browser."""
