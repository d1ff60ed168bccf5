"""How users leave: deactivation, the export of their data, and its deletion."""
