#= model: m
#= flags: {tp: 2}
#= env: {A: "1"}
if [ -d m ]; then
  env A=1 python -m sglang.launch_server --model m --tp 2 2>&1 | tee -a log.txt
fi
