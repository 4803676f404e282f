#= model: m
#= python: python
#= env: {CUDA_VISIBLE_DEVICES: "0,1"}
#= image: null
CUDA_VISIBLE_DEVICES=0,1 numactl --cpunodebind=0 uv run python -m sglang.launch_server --model m
