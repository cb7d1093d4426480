"""Import the memories of other programs: a reader for each source, and two ways to write."""
