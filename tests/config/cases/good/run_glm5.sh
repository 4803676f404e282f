#!/bin/bash
export PATH=/x:$PATH NCCL_P2P_LEVEL=SYS
python3 -m sglang.launch_server --model lukealonso/GLM-5-NVFP4 --served-model-name glm-5 \
  --reasoning-parser glm45 --tool-call-parser glm47 --trust-remote-code --tensor-parallel-size 4 \
  --mem-fraction-static 0.88 --disable-cuda-graph --host 0.0.0.0 --port 8000
