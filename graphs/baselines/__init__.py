"""Baselines of the papers, earlier versions and rival methods, as graphs in the same worlds."""
