"""The plays of streams: a turn of a conversation, text to speech, pronunciation assessment, and their parts.

The heard part of an answer (`playback.py`) is computed from the lengths of the sentences' audio, and within a
sentence from its mouth shapes if they are known. A listener may interrupt even after the answer is complete and
stored; the record is then truncated.

A turn that was taken over never ends with `end`. After a long pause, a process may find that another process has
taken over its turn. Its answer is added to its own record, which stays `incomplete`, and its stream ends with
`error` (`invalid_operation`, retryable). `lost_turn` in `records.py` makes this decision.
"""
