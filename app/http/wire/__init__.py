"""What arrives on a connection, before it is a request: limits on its bytes, and answers without the pipeline."""
