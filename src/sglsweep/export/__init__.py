"""One attempt as a file that people deploy: a shell script, a compose file, a Slurm job."""

from sglsweep.export.compose import compose
from sglsweep.export.deployment import Deployment, deployment_of
from sglsweep.export.sbatch import sbatch
from sglsweep.export.shell import shell

FORMS = {"shell": shell, "compose": compose, "sbatch": sbatch}
"""Name -> what writes that form."""

__all__ = ["FORMS", "Deployment", "compose", "deployment_of", "sbatch", "shell"]
