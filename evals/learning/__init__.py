"""Learning of knowledge cards, beside rivals and nothing, over many tasks."""
