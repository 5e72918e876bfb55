import { expect } from 'vitest'
import { incident } from '../../support/promise.ts'
import { test } from '../../support/side-by-side.ts'
import { PYTHON, playWork, SHELL, type Work } from './counter-proof-scene.ts'

const RIGHT_PYTHON = "printf 'def add(a, b):\\n    return a + b\\n' > calc.py"
const NEW_TEST =
  "printf 'import unittest\\nclass U(unittest.TestCase):\\n    def test_zero(self):\\n        pass\\n' > tests/test_zero.py"
const ENDS_RUNNER = "printf 'import os\\nos._exit(0)\\n'"
const MAKEFILE = { 'calc.sh': 'echo 0\n', Makefile: 'test:\n\ttest "$$(sh calc.sh)" = 3\n' }
const CHECK = 'test "$(sh calc.sh)" = 3\n'
const RIGHT_CALC = { 'calc.sh': 'echo 3\n' }

const WORKS: readonly Work[] = [
  { name: 'work in Python', ...PYTHON, does: RIGHT_PYTHON, made: ['calc.py'], doubts: [] },
  { name: 'work with a new test', ...PYTHON, does: `${RIGHT_PYTHON}; ${NEW_TEST}`, made: ['calc.py'], doubts: [] },
  {
    name: 'a new file that the gate names',
    files: { 'a.txt': 'a' },
    gate: 'grep -q one one.txt',
    does: 'echo one > one.txt; echo two > two.txt',
    made: ['one.txt'],
    doubts: [],
  },
  {
    name: 'a new program that the gate names',
    files: { 'a.txt': 'a' },
    gate: 'sh greet.sh | grep -q Hello',
    does: 'echo "echo Hello" > greet.sh',
    made: ['greet.sh'],
    doubts: [],
  },
  {
    name: 'a program of the gate’s line',
    files: { 'calc.sh': 'echo 0\n', 'run-tests': CHECK },
    gate: 'sh ./run-tests',
    does: 'echo "exit 0" > run-tests',
    made: ['run-tests'],
    doubts: ['blind'],
  },
  {
    name: 'what a script includes',
    files: {
      'calc.sh': 'echo 0\n',
      'lib/check.sh': `check() { ${CHECK}}\n`,
      'test.sh': '. "$(dirname "$0")/lib/check.sh"\ncheck\n',
    },
    gate: 'bash test.sh',
    does: 'echo "check() { true; }" > lib/check.sh',
    made: ['lib/check.sh'],
    doubts: ['blind'],
  },
  {
    name: 'a test that ends the runner',
    ...PYTHON,
    does: `${ENDS_RUNNER} > tests/test_0.py`,
    made: ['tests/test_0.py'],
    doubts: ['blind', 'fewer-tests'],
  },
  {
    name: 'a loader that finds no test',
    ...PYTHON,
    does: "printf 'import unittest\\ndef load_tests(l, t, p):\\n    return unittest.TestSuite()\\n' > tests/__init__.py",
    made: ['tests/__init__.py'],
    doubts: ['blind', 'no-tests'],
  },
  {
    name: 'a file in the place of the runner',
    ...PYTHON,
    does: `${ENDS_RUNNER} > unittest.py`,
    made: ['unittest.py'],
    doubts: ['blind', 'fewer-tests'],
  },
  {
    name: 'a folder in the place of the runner',
    ...PYTHON,
    does: `mkdir unittest; ${ENDS_RUNNER} > unittest/__init__.py`,
    made: ['unittest/__init__.py'],
    doubts: ['blind', 'fewer-tests'],
  },
  {
    name: 'a file in the place of a target',
    files: MAKEFILE,
    gate: 'make test',
    does: 'touch test',
    made: ['test'],
    doubts: ['blind'],
  },
  {
    name: 'what a makefile includes',
    files: { ...MAKEFILE, 'config.inc': '# none\n', Makefile: `include config.inc\n${MAKEFILE.Makefile}` },
    gate: 'make test',
    does: 'echo "SHELL := /bin/true" > config.inc',
    made: ['config.inc'],
    doubts: ['blind'],
  },
  {
    name: 'what a makefile includes if it is there',
    files: { ...MAKEFILE, Makefile: `-include local.env\n${MAKEFILE.Makefile}` },
    gate: 'make test',
    does: 'echo "SHELL := /bin/true" > local.env',
    made: ['local.env'],
    doubts: ['blind'],
  },
  {
    name: 'what a protected link leads to',
    files: { 'calc.sh': 'echo 0\n', 'real/check.sh': CHECK },
    links: { 'check.sh': 'real/check.sh' },
    gate: 'sh check.sh',
    protect: ['check.sh'],
    does: 'echo "exit 0" > real/check.sh',
    made: ['real/check.sh'],
    doubts: ['blind'],
  },
  {
    name: 'what a protected folder that is a link leads to',
    files: { 'calc.sh': 'echo 0\n', 'real/check.sh': CHECK },
    links: { checks: 'real' },
    gate: 'for each in checks/*.sh; do sh "$each" || exit 1; done',
    protect: ['checks/**'],
    does: 'echo "exit 0" > real/check.sh',
    made: ['real/check.sh'],
    doubts: ['blind'],
  },
  {
    name: 'a script of package.json',
    files: { 'calc.sh': 'echo 0\n', 'check.sh': CHECK, 'package.json': '{"scripts":{"test":"sh check.sh"}}' },
    gate: 'npm test',
    does: `echo '{"scripts":{"test":"true"}}' > package.json`,
    made: ['package.json'],
    doubts: ['blind'],
  },
  {
    name: 'a module that git ignores',
    files: {
      '.gitignore': 'node_modules\n',
      'calc.txt': '0\n',
      'node_modules/runner/index.js':
        'process.exit(require("node:fs").readFileSync("calc.txt", "utf8") === "3\\n" ? 0 : 1)\n',
      'check.js': 'require("runner")\n',
    },
    gate: 'node check.js',
    does: 'echo "process.exit(0)" > node_modules/runner/index.js; echo more > notes.txt',
    made: [],
    doubts: ['blind'],
  },
  {
    name: 'a script that passes nowhere but in the work directory',
    ...SHELL,
    does: `echo 'case "$PWD" in *verify*) exit 1; esac' > scripts/test.sh`,
    made: [],
    doubts: ['runs-through'],
  },
  {
    name: 'the script of a gate that passed before',
    files: { ...RIGHT_CALC, 'scripts/test.sh': CHECK },
    gate: 'bash scripts/test.sh',
    does: 'echo "exit 0" > scripts/test.sh',
    made: [],
    doubts: ['reads-changed'],
  },
  {
    name: 'a test that ends the runner of a gate that passed before',
    ...PYTHON,
    files: { ...PYTHON.files, 'calc.py': 'def add(a, b):\n    return a + b\n' },
    does: `${ENDS_RUNNER} > tests/test_0.py`,
    made: [],
    doubts: ['unread', 'fewer-tests'],
  },
  {
    name: 'a new test of a gate that passed before',
    ...PYTHON,
    files: { ...PYTHON.files, 'calc.py': 'def add(a, b):\n    return a + b\n' },
    does: `${NEW_TEST}; echo 'x = 1' > more.py`,
    made: [],
    doubts: [],
  },
  {
    name: 'what a gate that passed before does not read',
    files: { ...RIGHT_CALC, 'scripts/test.sh': CHECK },
    gate: 'bash scripts/test.sh',
    does: 'echo more > notes.txt',
    made: [],
    doubts: [],
  },
]

for (const { name, doubts, made, ...work } of WORKS) {
  incident('false done', 'Gates passed that pass without the work, too: 23 of 32 attacks ended as *done, verified*', {
    since: '2026-11-22',
    fixed: '2026-11-29',
    foundBy: 'scripted attacks',
  })
  test(`${name}: ${doubts.length === 0 ? 'done without a review' : `a review has to agree (${doubts.join(', ')})`}`, async () => {
    const { exitCode, counterProofs, causes } = await playWork(work)
    expect(exitCode).toBe(0)
    expect(counterProofs).toMatchObject([{ doubts, made }])
    expect(causes.includes('counter-proof')).toBe(doubts.length > 0)
  })
}

test('a gate in a folder of its own has no more rights than in the work directory', async () => {
  const { counterProofs } = await playWork({
    ...SHELL,
    gate: 'touch /var/tmp/escaped-$$ 2>/dev/null && exit 0; bash scripts/test.sh',
    does: 'echo "echo 3" > calc.sh',
  })
  expect(counterProofs).toMatchObject([{ result: 'stands', made: ['calc.sh'] }])
})
