#= flags: {tp: 2}
#= env: {HF_TOKEN: "${HF_TOKEN}", NCCL_DEBUG: WARN, A: b}
#= model: meta-llama/Llama-3.1-8B-Instruct
#= image: lmsysorg/sglang:v0.5.9
#= mounts: ["${HOME}/.cache/huggingface:/root/.cache/huggingface", "/data:/data:ro"]
#= unset: {env.HF_TOKEN: [HF_TOKEN]}
#= python: python3
docker run --gpus all --shm-size 32g -p 30000:30000 \
    -v $HOME/.cache/huggingface:/root/.cache/huggingface --volume=/data:/data:ro \
    --env "HF_TOKEN=$HF_TOKEN" -e NCCL_DEBUG=WARN --env=A=b --ipc=host \
    lmsysorg/sglang:v0.5.9 \
    python3 -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct --tp 2 --host 0.0.0.0 --port 30000
