"""Mistral's chat API: settings, requests out, requests in."""
