#= flags: {served-model-name: glm-5, reasoning-parser: glm45, trust-remote-code: true, tp: 8, mem-fraction-static: 0.88, disable-cuda-graph: true}
#= env: {}
#= python: python3
#= model: lukealonso/GLM-5-NVFP4
#= host: 0.0.0.0
#= port: 8000
#= unset: {}
#= notes: []
python3 -m sglang.launch_server --model lukealonso/GLM-5-NVFP4 --served-model-name glm-5 \
  --reasoning-parser glm45 --trust-remote-code --tp 8 \
  --mem-fraction-static 0.88 --disable-cuda-graph \
  --host 0.0.0.0 --port 8000
