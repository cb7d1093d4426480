"""Nodes of Memory Sharing: answer, score, store, and train the retriever."""
