"""The steps of the workflows."""
