"""Configs: their revisions and edits, and trials of drafts."""
