"""Amazon Bedrock's Converse API: settings, requests out, requests in."""
