import { expect, test } from 'vitest'
import {
  globsLookedAt,
  isGateConfiguration,
  isLockFile,
  isTestByName,
  ownFilesOf,
  TOP_CONFIGURATION,
} from '../../../src/core/rules/gate-files.ts'

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
