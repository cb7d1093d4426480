"""Pools of prompt-answer pairs, their rubrics and retrievers."""
