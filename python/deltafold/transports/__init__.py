"""Transports: HTTP clients and SDKs on one side, unread bodies of responses on the other.

Law: a transport knows bytes and headers, no messages.
"""
