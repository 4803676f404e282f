#!/usr/bin/env bash
#= flags: {tp: 8, quantization: modelopt_fp4, mem-fraction-static: 0.88}
#= env: {CUDA_HOME: /usr/local/cuda, OMP_NUM_THREADS: "8", PATH: "/usr/local/cuda/bin:${PATH}", NCCL_DEBUG: INFO}
#= python: /opt/sglang/bin/python
#= model: lukealonso/GLM-5-NVFP4
#= port: 8000
#= line: 10
#= unset: {env.PATH: [PATH]}
set -euo pipefail
MODEL=lukealonso/GLM-5-NVFP4   # the one
export CUDA_HOME=/usr/local/cuda OMP_NUM_THREADS=8
export PATH=$CUDA_HOME/bin:$PATH
ARGS="--tp 8 --quantization modelopt_fp4"

cd "$(dirname "$0")"

NCCL_DEBUG=INFO nohup /opt/sglang/bin/python -u -m sglang.launch_server --model "$MODEL" $ARGS \
  --mem-fraction-static=0.88 --port ${PORT:-8000} "$@" > log.txt 2>&1 &
