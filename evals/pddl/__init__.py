"""Planning problems with each memory, beside the paper's table."""
