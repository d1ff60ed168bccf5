"""The emulation of Azure's speech services."""
