# Step `browser`: the page and the client in Chromium, against the built program.
source tests/run.d/lib/common.sh
here=tests/browser
if [[ ! -f $here/package.json ]]; then
  echo "nothing to run: $here/package.json is not there"
  exit 0
fi
mapfile -t files < <(find "$here" -name node_modules -prune -o -name '*.test.js' -print | sort)
if [[ -n $ASKWELL_FILTER ]]; then
  # Nothing is installed or built for a name that stands in no test of this step.
  mapfile -t files < <(grep -lE -- "$ASKWELL_FILTER" "${files[@]}")
  ((${#files[@]})) || { echo "nothing to run: no browser test holds $ASKWELL_FILTER"; exit 0; }
fi
((${#files[@]})) || { echo "$here has no *.test.js"; exit 1; }

for command in node npm; do
  have "$command" || { echo "install Node.js first: there is no command $command"; exit 1; }
done
install_missing chromium=chromium || exit 1
# Chromium draws text as boxes where no font is installed, and recommended packages are left out.
[[ -d /usr/share/fonts/truetype ]] || install_missing no-font=fonts-liberation || exit 1

# npm writes this file at the end of an installation: when it is newer, the lock file is installed.
if [[ ! $here/node_modules/.package-lock.json -nt $here/package-lock.json ]]; then
  (cd "$here" && npm ci --ignore-scripts --no-audit --no-fund) || exit 1
fi
if [[ -z $ASKWELL_FILTER ]]; then
  check "$here/node_modules/.bin/tsc" --noEmit -p "$here"
fi

echo "+ cargo build -p askwell-gateway"
cargo build --locked -p askwell-gateway || exit 1
target=$(cargo metadata --locked --no-deps --format-version 1 |
  node -p 'JSON.parse(require("fs").readFileSync(0, "utf8")).target_directory') || exit 1
export ASKWELL_BIN=$target/debug/askwell

tap=$ASKWELL_OUT/browser.tap
echo "+ node --test"
node --test ${ASKWELL_FILTER:+--test-name-pattern="$ASKWELL_FILTER"} \
  --test-reporter=spec --test-reporter-destination=stdout \
  --test-reporter=tap --test-reporter-destination="$tap" "${files[@]}"
status=$?
# A cancelled test (its file ended early, or a time limit) has not passed.
read -r passed failed < <(awk '/^# pass [0-9]+$/ { p += $3 } /^# (fail|cancelled) [0-9]+$/ { f += $3 }
  END { print p + 0, f + 0 }' "$tap")
count "$passed" "$failed"
exit "$status"
