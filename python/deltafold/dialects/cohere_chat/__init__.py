"""Cohere's v2 chat API: settings, requests out, requests in."""
