"""Locations of IP addresses, from files of IP2Location and MaxMind.

A file is mapped into memory from a private copy (`files.py`), because a process that reads a mapped file is killed
when the file becomes shorter. The copy is unlinked once it is open, so it ends with the process. A new version of a
file is used only after sample addresses from the whole address range have been looked up in it.
"""
