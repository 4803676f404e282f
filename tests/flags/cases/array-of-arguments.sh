#= flags: {tp: 4, json-model-override-args: '{"a": [1, 2]}', disable-cuda-graph: true, page-size: 64}
#= model: m
args=(
  --model-path m
  --tp 4            # cards
  --json-model-override-args '{"a": [1, 2]}'
)
args+=(--disable-cuda-graph)
exec python -m sglang.launch_server "${args[@]}" --page-size 64
