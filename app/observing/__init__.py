"""What the server says about itself: log lines, and traces of streams."""
