"""Proofs of an identity: what clients send, how it is checked, and the limits on wrong ones."""
