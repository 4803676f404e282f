"""Knowledge as data: what lines of a launch mean, and which public reports they belong to.

- `load() -> Catalogue`: signatures and known issues, cached
- `python -m sglsweep.catalogue`: makes `compiled.json` again after an edit
"""

from sglsweep.catalogue.loader import load
from sglsweep.catalogue.signature import Catalogue, IssueRule, Role, Signature, Site, Tier

__all__ = ["Catalogue", "IssueRule", "Role", "Signature", "Site", "Tier", "load"]
