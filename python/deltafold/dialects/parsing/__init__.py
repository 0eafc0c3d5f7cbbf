"""Request bodies to messages: one module per wire protocol, the mirror of `deltafold.dialects`.

Each offers `parse(body, model_id=None)`; `deltafold.parse_request` finds the one that is asked for.
"""
