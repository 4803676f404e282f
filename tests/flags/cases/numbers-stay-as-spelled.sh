#= flags: {a: 1, b: "01", c: "1e-3", d: 0.9, e: "0.90", f: "1_000", g: "nan"}
python -m sglang.launch_server --model m --a 1 --b 01 --c 1e-3 --d 0.9 --e 0.90 --f 1_000 --g nan
