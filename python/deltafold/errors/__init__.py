"""The failure of a call: its exception, its causes, and the mapping of other exceptions to it."""
