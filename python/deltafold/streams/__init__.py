"""Streams and bodies: read as deltas, text or messages, and written in any protocol."""
