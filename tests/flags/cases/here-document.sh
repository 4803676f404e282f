#= model: right
#= notes: []
cat > other.sh <<'EOF'
python -m sglang.launch_server --model wrong
EOF
python -m sglang.launch_server --model right
