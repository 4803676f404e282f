"""`python -m sglsweep`."""

from sglsweep.cli.app import main

main()
