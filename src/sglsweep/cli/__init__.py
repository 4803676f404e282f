"""The command line: parse, wire, print, exit code; no decisions."""
