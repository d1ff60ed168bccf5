"""The engines of this machine: language model, recognition, voices, pronunciation and pictures.

They run in a separate process, and are vendors like any other, called over a socket. They may use a whole core or
crash without affecting the server, and the GPL-licensed ones stay in a separate process.
"""
