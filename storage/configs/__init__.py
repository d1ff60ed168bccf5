"""Configs of apps: their kinds, revisions, edits, rules, references and secrets."""
