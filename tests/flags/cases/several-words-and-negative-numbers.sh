#= flags: {cuda-graph-bs: [1, 2, 4], lora-paths: [a=x, b=y], mem-fraction-static: -0.05, watchdog-timeout: -1, trust-remote-code: true}
python -m sglang.launch_server --model m --cuda-graph-bs 1 2 4 --lora-paths a=x b=y \
  --mem-fraction-static -0.05 --watchdog-timeout=-1 --trust-remote-code
