#!/bin/sh
# Every check and timing of cm-cuda that needs a GPU.
#
#   gpu_check.sh build       builds the programs and puts them, stripped, beside a copy of this
#                            script into target/gpu
#   gpu_check.sh [FOLDER]    runs them: on a machine with a driver and CUDA's libraries, without Rust.
#                            Logs go to FOLDER (default: logs beside the script)
#
# Exits with the number of programs that failed; one failure does not stop the others.
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)

if [ "${1:-}" = build ]; then
    root=$(CDPATH= cd -- "$here/../.." && pwd)
    cd "$root" || exit 1
    mkdir -p target/gpu && rm -rf target/gpu/*
    profile=${CM_PROFILE:-dev}
    {
        cargo test -p cm-cuda --profile "$profile" --lib --tests --no-run \
            --message-format=json-render-diagnostics &&
            cargo build -p cm-cuda --profile "$profile" --examples --message-format=json-render-diagnostics &&
            cargo test -p cm-train --profile "$profile" --lib --no-run --message-format=json-render-diagnostics &&
            cargo bench -p cm-benches --profile "$profile" --bench step --no-run --message-format=json-render-diagnostics
    } > target/gpu/built.json || exit 1
    programs=$(sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' target/gpu/built.json)
    rm target/gpu/built.json
    for program in $programs; do
        name=$(basename "$program" | sed 's/-[0-9a-f]\{16\}$//')
        strip -o "target/gpu/$name" "$program" || exit 1
    done
    cp -R crates/cm-learner-tests/fixtures target/gpu/fixtures
    cp "$here/gpu_check.sh" target/gpu/
    ls -l target/gpu
    exit
fi

logs=${1:-$here/logs}
mkdir -p "$logs"
export CM_REQUIRE_CUDA=1 RUST_BACKTRACE=1
export CM_FIXTURES=${CM_FIXTURES:-$here/fixtures}
export CM_CUDA_CACHE=${CM_CUDA_CACHE:-$logs/../kernels}
if [ -z "${CM_NVRTC:-}" ]; then
    CM_NVRTC=$(find /usr/local /usr/lib /opt "$HOME" \( -name 'libnvrtc.so.13*' -o -name 'libnvrtc.so.12*' \) \
        -not -name '*.alt.*' 2>/dev/null | sort -t. -k3 -r | head -n 1)
    export CM_NVRTC
fi
# The compiler looks for a library of its own beside itself.
LD_LIBRARY_PATH=$(dirname "$CM_NVRTC")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
{
    nvidia-smi
    echo "CM_NVRTC=$CM_NVRTC"
} > "$logs/machine.log" 2>&1

failed=0
check() {
    name=$1
    shift
    start=$(date +%s)
    if "$@" > "$logs/$name.log" 2>&1; then result=ok; else
        result="FAILED ($?)"
        failed=$((failed + 1))
    fi
    echo "$name: $result, $(($(date +%s) - start)) s"
    grep -E '^test result|FAILED$|panicked' "$logs/$name.log" | head -n 20
}

# The kernels are compiled once, by the first program.
check lib timeout 100 "$here/cm_cuda" --test-threads=4 --skip kernels_compile
check method_time timeout 100 "$here/method_time"
cat "$logs/method_time.log"
check profile env CM_CUDA_PROFILE=1 timeout 60 "$here/method_time" tf32
check step_time timeout 60 "$here/step_time"
cat "$logs/step_time.log"
# Beside JAX, if Python has it: most of the time goes to its compiler.
check step timeout "${CM_JAX_SECONDS:-600}" "$here/step" --device cuda
cat "$logs/step.log"
check products timeout 60 "$here/products" --test-threads=3
check pairs timeout 60 "$here/pairs"
check rows timeout 60 "$here/rows"
check backend timeout 120 "$here/backend" --test-threads=8
check learners timeout 200 "$here/learners" --test-threads=8
check data timeout 60 "$here/cm_train" the_device_gathers
check training timeout 100 "$here/training" --test-threads=3
check cpu timeout 100 "$here/cpu" --test-threads=6

sanitizer=$(command -v compute-sanitizer || find /usr/local /opt -name compute-sanitizer -type f 2>/dev/null | head -n 1)
if [ "${CM_SANITIZE:-1}" = 1 ] && [ -n "$sanitizer" ]; then
    # Smaller, since everything is many times slower under it.
    some="highest::linear highest::quasimetric highest::captured_steps highest::gather \
        highest::categorical highest::permutation highest::info_nce highest::adam tf32::linear \
        highest::reduce highest::layer_norm highest::density highest::zip"
    for tool in memcheck racecheck; do
        check "$tool" timeout "${CM_SANITIZE_SECONDS:-300}" "$sanitizer" --tool "$tool" \
            --error-exitcode 9 "$here/backend" --test-threads=1 --exact $some
        grep -E 'ERROR SUMMARY|RACECHECK SUMMARY|=========' "$logs/$tool.log" | head -n 20
    done
else
    echo "SKIPPED: compute-sanitizer was not found"
fi
exit "$failed"
