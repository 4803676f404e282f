#= flags: {page-size: 1, tp: 4}
python -m sglang.launch_server --model m --tp 2 --page-size 1 --tp 4
