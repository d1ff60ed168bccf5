"""Audio in formats that Parley reads and writes: durations, MP3, PCM, and the words of a speech."""
