linkcheck=$PWD/bin/linkcheck.js
cd "$(mktemp -d)"
touch 'my notes.md' 'a+b (2).md'
echo '[a](my%20notes.md) [b](a%2Bb%20%282%29.md) [c](my%20gone.md)' > probe.md
node "$linkcheck" probe.md > found.txt
grep -q 'gone' found.txt || { echo 'A missing file is not found.'; exit 1; }
! grep -q 'notes' found.txt || { echo 'my%20notes.md is reported, and "my notes.md" is there.'; exit 1; }
! grep -q 'a%2Bb' found.txt || { echo 'a%2Bb%20%282%29.md is reported, and "a+b (2).md" is there.'; exit 1; }
