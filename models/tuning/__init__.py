"""Tuning a language model by LoRA on what was learned, and judging what it became."""
