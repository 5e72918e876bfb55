linkcheck=$PWD/bin/linkcheck.js
cd "$(mktemp -d)"
printf 'One\n\n[a](no.md)\n\n[b](probe.md) [c](gone.md)\n' > probe.md
node "$linkcheck" probe.md > found.txt
[ $? = 1 ] || { echo 'The exit code does not tell of a broken link.'; exit 1; }
grep -Eq 'probe\.md[^0-9]+3\b.*no\.md' found.txt || { echo 'File and line of the first are not there.'; exit 1; }
grep -Eq 'probe\.md[^0-9]+5\b.*gone\.md' found.txt || { echo 'File and line of the second are not there.'; exit 1; }
echo '[a](probe.md)' > probe.md
node "$linkcheck" probe.md || { echo 'The exit code tells of a broken link where there is none.'; exit 1; }
