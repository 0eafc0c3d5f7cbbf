"""The demo: recordings from a server on this machine, read through the real SDKs, and an agent."""
