#= flags: {tp: 2}
#= model: m
#= python: null
sglang serve --model-path m --tp 2
