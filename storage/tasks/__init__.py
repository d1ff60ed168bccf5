"""Predictions and images: their tasks, and the files of these.

An image task ends in one statement (`end` in `image_tasks.py`), whoever has read it: a job, or the job of a
webhook. Only the one that has ended it gives the quota back. Each reading stores the job of the next one.
"""
