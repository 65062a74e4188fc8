# Step `lints`: clippy as the workspace sets it, and the docs without a warning.
source tests/run.d/lib/common.sh
check cargo clippy --locked --workspace --all-targets -- -D warnings
RUSTDOCFLAGS="-D warnings" check cargo doc --locked --workspace --no-deps --document-private-items
