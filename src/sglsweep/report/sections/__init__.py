"""The sections of FINDINGS.md: each takes a run and returns blocks; none for nothing to say."""
