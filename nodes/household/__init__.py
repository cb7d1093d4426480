"""Nodes of household tasks: MiTa and the methods that it is compared with."""
