"""History to FINDINGS.md and its other forms."""
