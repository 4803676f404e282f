#= model: a/b
#= flags: {tp: 4, dp: 2}
TP=${TP:-4}
python -m sglang.launch_server --model ${MODEL:-a/b} --tp $TP --dp "${DP:=2}"
