"""Ollama's own chat API: settings, requests out, requests in."""
