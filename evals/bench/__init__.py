"""Speed of our own parts, each beside the alternative without them."""
