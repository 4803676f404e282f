#= model: m
#= flags: {tp: 2}
python -m sglang.launch_server --model m \
  --tp 2
