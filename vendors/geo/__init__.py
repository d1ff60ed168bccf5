"""Locations of IP addresses, from files of IP2Location and MaxMind.

A file is mapped into memory from a private copy (`files.py`), because a process that reads a mapped file is killed
when the file becomes shorter. The copy has no name, so it is gone with the process. A version of the file is only
used once addresses all over it have been looked up.
"""
