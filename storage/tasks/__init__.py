"""Predictions and images: their tasks, and the files of these."""
