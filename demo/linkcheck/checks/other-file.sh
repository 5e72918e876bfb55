linkcheck=$PWD/bin/linkcheck.js
cd "$(mktemp -d)"
echo '# One' > other.md
echo '[a](other.md#one) [b](other.md#two)' > probe.md
node "$linkcheck" probe.md > found.txt
grep -q 'other\.md#two' found.txt || { echo 'A heading that another file lacks is not found.'; exit 1; }
! grep -q 'other\.md#one' found.txt || { echo 'A heading of another file is reported.'; exit 1; }
