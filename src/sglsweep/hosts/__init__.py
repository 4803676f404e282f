"""Ways to reach a machine."""
