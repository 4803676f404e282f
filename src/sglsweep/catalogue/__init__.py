"""Knowledge as data, with the loader that checks it."""
