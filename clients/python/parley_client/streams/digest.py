"""The digest of the text and audio of a stream, by which a client sees that nothing is missing."""

import hashlib

from parley_client.streams.events import AudioChunk, Event, StreamDigest, TextChunk


class Digest:
    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._chars = 0

    def add(self, event: Event) -> None:
        """Add an event, in the order of the ids. Text that a restart has made void counts as well."""
        if isinstance(event, TextChunk):
            self._hash.update(event.text.encode())
            self._chars += len(event.text)
        elif isinstance(event, AudioChunk):
            self._hash.update(event.audio)

    def value(self) -> StreamDigest:
        return StreamDigest(chars=self._chars, sha256=self._hash.hexdigest())
