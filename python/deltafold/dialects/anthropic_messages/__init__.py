"""Anthropic's Messages API: settings, requests out, requests in."""
