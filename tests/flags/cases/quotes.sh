#= flags: {served-model-name: a b, chat-template: 'it''s "x"', x: "tab\\there"}
python -m sglang.launch_server --model m --served-model-name 'a b' --chat-template "it's \"x\"" --x "tab\there"
