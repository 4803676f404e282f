#= env: {HF_TOKEN: "${HF_TOKEN}"}
#= unset: {env.HF_TOKEN: [HF_TOKEN]}
#= image: img
podman run -e HF_TOKEN img python3 -m sglang.launch_server --model-path m
