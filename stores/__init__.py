"""Stores of everything that Mneme remembers."""
