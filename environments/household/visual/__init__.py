"""The household through eyes: what agents see is rendered, and perceived from segments and depth."""
