# Step `format`: rustfmt's defaults.
source tests/run.d/lib/common.sh
check cargo fmt --all --check
