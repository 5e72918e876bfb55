linkcheck=$PWD/bin/linkcheck.js
cd "$(mktemp -d)"
printf '# One\n\n[a](no.md) [b](probe.md) [c](#one) [d](#two)\n' > probe.md
node "$linkcheck" probe.md > found.txt
grep -q 'no\.md' found.txt || { echo 'A missing file is not found.'; exit 1; }
grep -q '#two' found.txt || { echo 'A missing heading is not found.'; exit 1; }
! grep -q '#one' found.txt || { echo 'A heading that is there is reported.'; exit 1; }
