"""Answers without a model, registered by prompt; loaded only where `rules` answers."""
