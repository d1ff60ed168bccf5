"""Printers of postcards."""
