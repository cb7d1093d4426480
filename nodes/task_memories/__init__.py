"""Memories that a team may be given for its tasks: eight kinds behind one interface, exchangeable."""
