"""What a deployment costs: each message, and each record that is kept."""
