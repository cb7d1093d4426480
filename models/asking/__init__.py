"""Ask a typed question of a model, a rule or a script."""
