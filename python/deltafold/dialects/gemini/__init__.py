"""Google's Gemini API: settings, requests out, requests in."""
