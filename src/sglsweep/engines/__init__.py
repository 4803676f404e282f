"""Many hosts."""
