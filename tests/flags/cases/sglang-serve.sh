#= flags: {tp: 2, enable-x: false}
#= model: Qwen/Qwen3-8B
#= python: /opt/sglang/bin/python
/opt/sglang/bin/sglang serve Qwen/Qwen3-8B --tp 2 --no-enable-x
