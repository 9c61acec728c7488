"""A scripted model API on loopback in the dialects of Anthropic, OpenAI and Ollama, with their failures."""
