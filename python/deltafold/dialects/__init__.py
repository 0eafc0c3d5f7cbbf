"""Messages to request bodies: one pure module per wire protocol, the mirror of the Rust dialects.

Each offers `request_body(messages, tools, config)`, which does no I/O and keeps no state, so that
every rule of a protocol is a table test.
"""
