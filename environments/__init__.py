"""Worlds where teams act, with rules of their own that no team can bend."""
