#= flags: {tp: 2}
#= env: {A: b, Z: "1"}
#= model: m
#= image: img
docker run -d -e A=b img bash -lc "export Z=1; python3 -m sglang.launch_server --model-path m --tp 2"
