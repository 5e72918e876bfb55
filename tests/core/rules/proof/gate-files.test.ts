import { expect, test } from 'vitest'
import {
  executedBy,
  globsLookedAt,
  includedBy,
  isGateConfiguration,
  isGateMatter,
  isLockFile,
  isTestByName,
  namesFoundBy,
  ownFilesOf,
  TOP_CONFIGURATION,
} from '../../../../src/core/rules/proof/gate-files.ts'
import { promise } from '../../../support/promise.ts'

const MAKEFILES = ['GNUmakefile', 'makefile', 'Makefile']

test.each([
  ...[
    '.npmrc',
    'web/.npmrc',
    '.yarnrc',
    '.yarnrc.yml',
    '.pnpmfile.cjs',
    'bunfig.toml',
    'conftest.py',
    'lib/sitecustomize.py',
  ],
  ...[
    'Makefile',
    'GNUmakefile',
    'sub/makefile',
    'rules.mk',
    'jest.config.js',
    'vitest.config.mts',
    'pytest.ini',
    'tox.ini',
  ],
  ...[
    'node_modules/.bin/vitest',
    'web/node_modules/.bin/grep',
    '.cargo/config.toml',
    'a/.cargo/config',
    '.gitattributes',
  ],
])('a gate may run through %s', path => {
  expect(isGateConfiguration(path)).toBe(true)
})

test.each([
  ...[
    'src/main.ts',
    'package.json',
    'README.md',
    'npmrc',
    'docs/Makefile.md',
    'node_modules/vitest/package.json',
    'config.toml',
  ],
  ...['tests/a.test.ts', '.gitignore', 'Cargo.toml', 'makefiles/a.txt', '.bin/vitest'],
])('no gate runs through %s by its name alone', path => {
  expect(isGateConfiguration(path)).toBe(false)
})

test('all that is looked at where git ignores it is configuration by its name', () => {
  expect(TOP_CONFIGURATION.filter(path => !isGateConfiguration(path))).toEqual([])
})

test('a test is known by its name, and a helper beside it is none', () => {
  const tests = [
    'a.test.ts',
    'x/test_a.py',
    'a_test.go',
    'a.spec.js',
    'ATest.java',
    'AppTests.swift',
    'a_spec.rb',
    'a.bats',
  ]
  const more = [
    'tests/__snapshots__/a.test.ts.snap',
    'TestApp.cs',
    'PaymentIT.java',
    't/basic.t',
    'login.feature',
    'a.cy.ts',
  ]
  const helpers = [
    'tests/helper.sh',
    'tests/setup.ts',
    'tests/latest.js',
    'tests/grep',
    'tests/contest.py',
    'tests/__init__.py',
  ]
  expect([...tests, ...more].filter(path => !isTestByName(path))).toEqual([])
  expect(helpers.filter(isTestByName)).toEqual([])
})

promise('D50', 'A gate protects the makefile that it runs')
test.each<[string, readonly string[]]>([
  ['make test', ['GNUmakefile', 'makefile', 'Makefile']],
  ['CI=1 timeout 60 make -C sub test', ['sub/GNUmakefile', 'sub/makefile', 'sub/Makefile']],
  ['timeout -k 5 60 nice -n 10 make test', ['GNUmakefile', 'makefile', 'Makefile']],
  ['cd sub && make test', ['sub/GNUmakefile', 'sub/makefile', 'sub/Makefile']],
  ['cd /tmp; make', []],
  ['bash -lc "make test"', ['GNUmakefile', 'makefile', 'Makefile']],
  ['make -f ci.mk test', ['GNUmakefile', 'makefile', 'Makefile', 'ci.mk']],
  ['npm ci && just check', ['justfile', 'Justfile', '.justfile']],
  ['./node_modules/.bin/vitest run', ['node_modules/.bin/vitest']],
  ['npx vitest run --config=ci/vitest.config.ts', ['ci/vitest.config.ts']],
  ['pytest -c "pytest.ini" tests', ['pytest.ini']],
  ['npm test', []],
  ['echo make', []],
  ['make -C /etc test; make -C ../up', []],
  ['make --file ci.mk', ['GNUmakefile', 'makefile', 'Makefile', 'ci.mk']],
  ['make  -f', ['GNUmakefile', 'makefile', 'Makefile']],
  ['grep -f words.txt a', []],
  ['pytest -c=ci/pytest.ini', ['ci/pytest.ini']],
  ['x ././/Makefile', ['Makefile']],
  ['CI=1', []],
  ['cp 1.mk a=Makefile', ['1.mk']],
  ['2make; 9 make', []],
  ['make -f build/rules all', [...MAKEFILES, 'build/rules']],
  ['make --file=build/rules', [...MAKEFILES, 'build/rules']],
  ['make --directory=sub && make --directory sub', MAKEFILES.map(name => `sub/${name}`)],
  ['ls -f build/rules', []],
])('%s runs %j by itself', (run, files) => {
  expect(ownFilesOf(run)).toEqual(files)
})

test('what is looked at though git ignores it is what gates protect, and with it the configuration', () => {
  expect(globsLookedAt([{ protect: [] }, { protect: [] }])).toEqual([])
  expect(globsLookedAt([{ protect: ['a'] }, { protect: ['b'] }])).toEqual(['a', 'b', ...TOP_CONFIGURATION])
})

test('an install is known by its lock file', () => {
  const locks = ['package-lock.json', 'web/npm-shrinkwrap.json', 'yarn.lock', 'pnpm-lock.yaml', 'bun.lock', 'bun.lockb']
  expect(locks.filter(path => !isLockFile(path))).toEqual([])
  expect(['my-yarn.lock', 'yarn.lock.old', 'yarn.lock/a', 'package.json'].filter(isLockFile)).toEqual([])
})

test.each([
  ['./run-tests', ['run-tests']],
  ['bash scripts/test.sh --all', ['scripts/test.sh']],
  ['cd app && sh -e check.sh', ['check.sh']],
  ['. ./env.sh; source lib/x.sh', ['env.sh', 'lib/x.sh']],
  ['CI=1 timeout 60 bash ci/all.sh', ['ci/all.sh']],
  ['node check.js | grep -q ok', ['check.js']],
  ['python3 tests/run.py', ['tests/run.py']],
  ['make test && npm test && pytest tests/a.py', []],
  ['test -f one.txt', []],
  ['bash /usr/bin/check; bash ~/check; sh ../check', []],
  ['sh -c "./inner"', ['inner']],
])('the line %j executes %j', (run, files) => {
  expect(executedBy(run)).toEqual(files)
})

test.each([
  ['. ./env.sh\n  source "lib/a b.sh"', ['env.sh', 'lib/a', 'b.sh']],
  ['. "$(dirname "$0")/lib/check.sh"', ['lib/check.sh']],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the shell
  ['source ${BASE}/x.sh; . $HERE/y.sh', ['x.sh', 'y.sh']],
  [
    'include config.mk other.mk # both\n-include local.env\nsinclude more.mk',
    ['config.mk', 'other.mk', 'local.env', 'more.mk'],
  ],
  ['echo . a; bash b.sh; # source c.sh', []],
  ['. /etc/profile', []],
])('the text %j includes %j', (text, files) => {
  expect(includedBy(text)).toEqual(files)
})

test('a text without end is looked through in no time to speak of', () => {
  expect(includedBy(`source ${'a '.repeat(1_000_000)}`).length).toBeLessThan(300)
  expect(includedBy(`${'. '.repeat(1_000_000)}`).length).toBeLessThan(300)
})

test.each([
  ['make -j2 test lint CC=gcc', ['make', 'test', 'lint']],
  ['python3 -m unittest discover', ['python3', 'unittest']],
  ['python -m mypackage', ['python']],
  ['npm test', ['npm']],
  ['./run-tests', []],
])('the line %j finds %j without a path', (run, names) => {
  expect(namesFoundBy(run)).toEqual(names)
})

test.each([
  'tests/x.py',
  'src/__tests__/helper.ts',
  'src/a.test.ts',
  'spec/fixtures/x.json',
  'package.json',
  'pyproject.toml',
  'tsconfig.build.json',
  '.babelrc',
  'babel.config.js',
  'Makefile',
  'yarn.lock',
  '.env.test',
])('a gate may run through %s by its place or name', path => {
  expect(isGateMatter(path)).toBe(true)
})

test.each(['src/a.ts', 'calc.py', 'docs/testing.md', 'latest/x.ts', 'contest.py', 'one.txt', 'src/attests/a.ts'])(
  '%s is work',
  path => {
    expect(isGateMatter(path)).toBe(false)
  },
)
