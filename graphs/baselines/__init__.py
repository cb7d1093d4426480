"""What the papers compare with: earlier versions and rival methods, as graphs of the same worlds."""
