"""How fast our own parts are, each beside what can be had without them."""
