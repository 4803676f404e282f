#= flags: {tp: "${GPUS}", revision: "$(git rev-parse HEAD)"}
#= model: "${MODEL}"
#= unset: {tp: [GPUS], revision: ["$(git rev-parse HEAD)"], model-path: [MODEL]}
python -m sglang.launch_server --model-path $MODEL --tp "$GPUS" --revision $(git rev-parse HEAD) --port $PORT
