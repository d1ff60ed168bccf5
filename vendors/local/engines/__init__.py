"""The local engines: language model, recognition, voices and pronunciation."""
