"""The demo: both adapters stream recordings from a loopback server, through the real SDKs."""
