"""Learning of knowledge cards, and retrieval from very many of them."""
