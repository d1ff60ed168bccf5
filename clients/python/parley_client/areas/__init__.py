"""The endpoints of an app besides its streams, one module for each area. Each method is one request."""
