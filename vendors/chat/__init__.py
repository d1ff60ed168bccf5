"""Language models, one file per protocol."""
