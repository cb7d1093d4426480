"""The retriever that learns (Memory Sharing)."""
