"""Find out which SGLang launch flags work for a model on a GPU host."""

__version__ = "0.1.0"
