import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Recorded } from '../../../src/core/events/events.ts'
import { incident, promise } from '../../support/promise.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { eventsOf, openScene, type Scene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'

const journalOf = (scene: Scene): Recorded[] =>
  scene
    .recorded('journal.ndjson')
    .trimEnd()
    .split('\n')
    .slice(1)
    .map(line => JSON.parse(line))

/** What the usual ignore files of these languages name, as github/gitignore has them. */
const USUAL = {
  Node: 'logs *.log npm-debug.log* report.[0-9]*.json pids *.pid *.seed *.pid.lock lib-cov coverage *.lcov .nyc_output bower_components build/Release node_modules/ jspm_packages/ web_modules/ *.tsbuildinfo .npm .eslintcache .stylelintcache .rpt2_cache/ .node_repl_history *.tgz .yarn-integrity .env .cache .parcel-cache .next out .nuxt dist .temp .docusaurus .serverless/ .fusebox/ .vscode-test',
  Python:
    '__pycache__/ *.py[codz] *$py.class *.so .Python build/ develop-eggs/ dist/ downloads/ eggs/ .eggs/ lib64/ parts/ sdist/ var/ wheels/ *.egg-info/ *.egg MANIFEST pip-log.txt htmlcov/ .tox/ .nox/ .coverage .coverage.* nosetests.xml coverage.xml *.cover .hypothesis/ .pytest_cache/ cover/ docs/_build/ .pybuilder/ target/ .ipynb_checkpoints .venv env/ venv/ .mypy_cache/ .ruff_cache/',
  Rust: 'debug target **/*.rs.bk *.pdb **/mutants.out*/',
  Go: '*.exe *.exe~ *.dll *.so *.dylib *.test *.out coverage.* *.coverprofile profile.cov vendor/ go.work .env',
  Java: '*.class *.log .mtj.tmp/ *.jar *.war *.nar *.ear hs_err_pid* replay_pid* target/ .gradle/ build/',
}

/** What builds, tests and installs of these languages leave, other each time. */
const WRITTEN = [
  ...['node_modules/left-pad/index.js', 'dist/app.js', 'coverage/lcov.info', '.nyc_output/1.json', 'app.tsbuildinfo'],
  ...['npm-debug.log', 'packages/a/node_modules/b.js', '.next/build-manifest.json', '.eslintcache', '.cache/x'],
  ...['src/__pycache__/app.cpython-313.pyc', '.venv/bin/python', 'htmlcov/index.html', '.coverage', 'coverage.xml'],
  ...['.pytest_cache/v/nodeids', '.mypy_cache/a.json', 'app.egg-info/PKG-INFO', 'build/lib/app.py', '.tox/py/log'],
  ...['target/debug/app', 'target/debug/deps/app.d', 'src/lib.rs.bk', 'app.pdb', 'mutants.out/log'],
  ...['app.test', 'coverage.out', 'profile.cov', 'vendor/modules.txt', 'app.exe', 'unit.coverprofile'],
  ...['src/App.class', 'app.jar', '.gradle/x.lock', 'target/surefire-reports/a.txt', 'hs_err_pid1.log'],
]

promise(
  'D42',
  'Dependencies, caches and build output that are ignored since refuse no claim, in Node, Python, Rust, Go and Java; what was not looked at is named',
)
test('an agent that writes the usual ignore files, and builds and tests in each round, is done without a refusal', async () => {
  const rules = Object.values(USUAL).join(' ').split(' ').join('\n')
  const build = `for f in ${WRITTEN.join(' ')}; do mkdir -p "$(dirname "$f")"; date +%N > "$f"; done`
  await using scene = await openScene(
    [
      round(`cat > .gitignore <<'END'\n${rules}\nEND\nmkdir src; echo '${build}' > src/test.sh\n${build}`),
      round(`${build}\n${claimDone}`),
    ],
    { git: false },
  )
  const { exitCode, stdout } = await scene.run('--plain', '--verify', 'sh src/test.sh', 'build X')
  expect(stdout).not.toContain('Not accepted')
  expect(exitCode).toBe(0)
  const events = journalOf(scene)
  expect(eventsOf(events, 'round-ended').map(({ changed }) => changed)).toEqual([['.gitignore', 'src/test.sh'], []])
  // It is excepted, and said.
  const certificate = JSON.parse(scene.recorded('done.json'))
  expect(certificate.notLookedAt.paths).toEqual(expect.arrayContaining(['node_modules/', 'coverage/', 'dist/']))
  expect(scene.memory('report.md')).toMatch(/^Not checked and not saved: .*and \d+ more\.$/m)
  const verified = await scene.run('verify')
  expect(verified.stdout).toMatch(/^ {2}Not looked at: \.cache\/, .* and \d+ more$/m)
  expect(verified.exitCode).toBe(0)
})

promise(
  'D41',
  'Work that a round hides behind an ignore rule is work: a claim of that round is refused, `verify` sees what became of it, and `rewind` brings it back',
)
incident(
  'false done',
  'A claim was believed although the round that made it had changed files behind a `.gitignore` of its own',
  { since: '2026-11-21', fixed: '2026-11-22', foundBy: 'a trial' },
)
test('work that a round hides behind an ignore rule is work: claims see it, verify does, and rewind brings it back', async () => {
  await using scene = await openScene([
    round(`echo '*' > .gitignore; mkdir src; echo one > src/a; echo one > src/b`),
    round('echo two > src/a', claimDone),
    round(`echo '# more' >> .gitignore`, claimDone),
    round(claimDone),
  ])
  const { place } = scene
  const { exitCode } = await scene.run('--json', '--verify', 'test -f src/a', 'build X')
  expect(exitCode).toBe(0)
  const refused = eventsOf(journalOf(scene), 'done-refused').map(({ round: n, reason, detail }) => [n, reason, detail])
  expect(refused).toEqual([
    [2, 'tree-changed', expect.stringContaining('src/a')],
    [3, 'tree-changed', expect.stringContaining('.gitignore')],
  ])
  expect((await scene.run('verify')).stdout).toContain('The files are the same as when it was done.')

  const ended = readFileSync(join(place.directory, 'src/a'), 'utf8')
  writeFileSync(join(place.directory, 'src/a'), 'changed')
  rmSync(join(place.directory, 'src/b'))
  writeFileSync(join(place.directory, 'src/c'), 'new')
  expect((await scene.run('verify')).stdout).toContain('3 files have changed since: src/a, src/b, src/c')
  const rewound = await scene.run('rewind', '4')
  expect([rewound.exitCode, rewound.stderr]).toEqual([0, ''])
  expect(rewound.stdout).toContain('1 file changed, 1 file restored.\n')
  expect(rewound.stdout).toContain('Not changed (made after the last session ended): src/c (1 file).')
  expect(readFileSync(join(place.directory, 'src/a'), 'utf8')).toBe(ended)
  expect((await scene.run('verify')).stdout).toContain('1 file has changed since: src/c')
  expect(readFileSync(join(place.directory, 'src/c'), 'utf8')).toBe('new')
  await scene.run('rewind', 'before-rewind-1')
  expect(readFileSync(join(place.directory, 'src/a'), 'utf8')).toBe('changed')
})

promise(
  'D51',
  "What codex keeps in its home for itself is no work of an agent's, where the work directory holds that home",
)
incident('lost night', 'In a home directory each claim was refused because of files that codex itself writes', {
  since: '2026-11-21',
  fixed: '2026-11-23',
  foundBy: 'a trial',
})
test('in a directory that holds the home of codex, what codex keeps there for itself is nobody’s work', async () => {
  await using scene = await openScene([
    round('echo work > app.ts; echo "# mine" >> codex-home/AGENTS.md'),
    round(claimDone),
  ])
  const { place } = scene
  const { exitCode, stdout } = await scene.run('-C', place.root, '--plain', '--rounds', '3', 'build X')
  expect(stdout).not.toContain('Not accepted')
  expect(exitCode).toBe(0)
  const kept = await scene.run('diff', '-C', place.root, 'start', '2', '--stat')
  expect(kept.stdout).toContain('app.ts')
  expect(kept.stdout).toContain('codex-home/AGENTS.md')
  expect(kept.stdout).not.toMatch(/sqlite|sessions|auth\.json/)
})
