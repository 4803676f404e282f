"""What to launch next: strategies as pure functions of the history."""
