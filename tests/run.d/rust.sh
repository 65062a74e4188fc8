# Step `rust`: every Rust test, with private servers that the harness starts and ends.
source tests/run.d/lib/common.sh
install_missing rabbitmq-server=rabbitmq-server redis-server=redis-server || exit 1

# The harness starts the programs that lie beside its own binary.
echo "+ cargo build --workspace --bins"
cargo build --locked --workspace --bins || exit 1

log=$ASKWELL_OUT/cargo-test.log
echo "+ cargo test --workspace $ASKWELL_FILTER"
# One list of arguments for all test binaries; an empty filter must not be passed as an empty name.
cargo test --locked --workspace --no-fail-fast ${ASKWELL_FILTER:+"$ASKWELL_FILTER"} 2>&1 | tee "$log"
status=${PIPESTATUS[0]}

# test result: ok. 3 passed; 0 failed; 0 ignored; ...
read -r passed failed < <(sed -nE 's/.*test result: [A-Za-z]+\. ([0-9]+) passed; ([0-9]+) failed;.*/\1 \2/p' "$log" |
  awk '{ p += $1; f += $2 } END { print p + 0, f + 0 }')
count "$passed" "$failed"
exit "$status"
