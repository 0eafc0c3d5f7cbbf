"""OpenAI's Chat Completions API: settings, requests out, requests in."""
