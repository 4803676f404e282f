"""What runs on the host, each one file: standard library only, Python 3.8 and later."""
