"""Let PyPI's torchvision import beside a CPU build of torch.

Its compiled part wants CUDA's libraries and does not load there; its Python part then fails with
"operator torchvision::nms does not exist". SGLang only imports the package, so it is enough to
declare the two operators that are registered without a guard (nms and qnms) before that import.

Installed as a line of a `.pth` file; costs nothing until torchvision is imported.
"""

import importlib.abc
import sys

_OPERATORS = ("nms", "qnms")
_keep = []


class _DeclareOperators(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname != "torchvision":
            return
        sys.meta_path.remove(self)
        import torch

        if torch.version.cuda is None and torch.version.hip is None:
            library = torch.library.Library("torchvision", "DEF")
            for name in _OPERATORS:
                library.define(
                    name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
                )
            _keep.append(library)
        return


sys.meta_path.insert(0, _DeclareOperators())
