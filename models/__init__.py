"""Who answers: Ollama, rules, scripted; embedders."""
