"""History: entries, the log that keeps them, and their projection to messages."""
