"""Models of `transformers` in this process: settings and requests."""
