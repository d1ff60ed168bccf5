"""Tasks for predictions and images, and their files.

One statement ends an image task (`end` in `image_tasks.py`), whether the task's own job or the job of a webhook has
read it. Only the job that has ended the task gives the quota back. Each read stores the job for the next one.
"""
