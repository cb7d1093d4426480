"""The chatbot and its memory agent: contradictions, long conversations, latency."""
