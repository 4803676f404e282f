#= model: prefill
#= notes: ["6: another launch, left out: the first one is read"]
#= line: 4

# one after another

python -m sglang.launch_server --model prefill &

python -m sglang.launch_server --model decode
