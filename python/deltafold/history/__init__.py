"""History: what was said, kept so that it can be sent to any provider."""
