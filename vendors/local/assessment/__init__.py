"""How the local engine grades pronunciation: words, syllables and prosody."""
