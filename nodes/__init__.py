"""The nodes of all graphs: each asks, recalls, remembers, acts or computes."""
