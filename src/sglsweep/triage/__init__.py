"""Log bytes to a diagnosis: records, signatures, the earliest cause, effective flags.

Public surface (everything else is private to the package):

- `diagnose.diagnose(log, catalogue, ending=...) -> Diagnosis`
- `follow.Follower(catalogue)`: the same, fed in pieces while a server runs
"""
