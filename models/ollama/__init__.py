"""Ollama: its models, its protocol, its tokenizers."""
