"""Memory Sharing: the paper's tables, and the speed of the retriever."""
