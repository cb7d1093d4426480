"""Memories of a team that solves tasks: eight interchangeable kinds behind one interface."""
