"""SWEEP.yaml and hosts.yaml to frozen types, errors with file:line."""
