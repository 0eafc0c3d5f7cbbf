"""OpenAI's Responses API: settings, requests out, requests in."""
