"""The message that a stream folds into: its parts, its cost and timing, and what shows one.

Law: this room imports `contract` alone.
"""
