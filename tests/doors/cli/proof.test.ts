import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import type { Recorded } from '../../../src/core/events/events.ts'
import { reply, shell } from '../../../src/demo/model/reply.ts'
import { git } from '../../support/place.ts'
import { incident, promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, flagDone, folder, round, says, writeTasks } from '../../support/rounds.ts'
import { eventsOf, openScene, type Scene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'

const journalOf = (scene: Scene, session = 1): Recorded[] =>
  scene
    .recorded('journal.ndjson', session)
    .trimEnd()
    .split('\n')
    .slice(1)
    .map(line => JSON.parse(line))

const agrees = JSON.stringify({ verdict: 'agreed', summary: 'It is all there.', findings: [] })
const finds = (problem: string) =>
  JSON.stringify({
    verdict: 'findings',
    summary: 'Not yet.',
    findings: [{ severity: 'major', file: 'check.sh', line: 1, problem, mend: 'Mend it.' }],
  })

test('an agent that lies about tests is not believed: it is told what fails, and done is verified once they pass', async () => {
  await using scene = await openScene([
    round('printf "echo two of three passed; exit 3\\n" > check.sh'),
    round(claimDone),
    round('printf "exit 0\\n" > check.sh'),
    round(claimDone),
  ])
  // Where a person signs every commit, a savepoint neither asks them nor is signed.
  const gpg = join(scene.place.home, 'gpg')
  await writeFile(gpg, `#!/bin/sh\ntouch ${gpg}-ran\nexit 1\n`, { mode: 0o755 })
  git(scene.place, 'config', '--global', 'gpg.program', gpg)
  git(scene.place, 'config', '--global', 'commit.gpgSign', 'true')
  const { exitCode, stdout } = await scene.run('--plain', '--verify', 'sh check.sh', 'build X')
  expect(exitCode).toBe(0)
  expect(scene.input(1)).toContain('The check `sh check.sh` fails (exit code 2).')
  expect(scene.input(1)).toContain('It was the same before any work was done.')
  expect(scene.input(3)).toContain('The check `sh check.sh` fails (exit code 3).')
  expect(scene.input(3)).toContain('two of three passed')
  expect(stdout).toContain('gate sh check.sh, before round 1: failed (exit code 2)')
  expect(stdout).toContain('Not accepted: The check')
  expect(stdout).toContain('ended: done, gates pass: verified by 1 gate')
  expect(stdout).toMatch(/done, gates pass.*\nchecked\ngoal {5}build X\nproof {4}sh check\.sh:? passed/)
  const certificate = JSON.parse(scene.recorded('done.json'))
  expect(certificate).toMatchObject({
    goal: 'build X',
    verified: true,
    rounds: 4,
    gates: [{ name: 'sh check.sh', status: 'passed', exitCode: 0, before: 'failed' }],
  })
  expect(JSON.parse(scene.memory('done.json'))).toEqual(certificate)
  expect(scene.memory('report.md')).toContain('build X')
  expect(scene.memory('report.html')).toContain('</html>')
  const kept = git(scene.place, `--git-dir=${join(scene.records(), 'git')}`, 'log', '--all', '--format=%G?%s')
  // What it began with, and the two rounds that changed something.
  expect(kept.match(/^Ncodemachine: after round/gm)).toHaveLength(3)
  expect(existsSync(`${gpg}-ran`)).toBe(false)
})

promise(
  'D94',
  'Where nothing proves a goal, the first line and the last one say what would; `--verify auto` is gone by as if it was typed',
)
test('--verify auto takes the test command of the project, and where nothing proves a goal, that is offered', async () => {
  const makefile = `printf 'check:\n\ttest -f x\n' > Makefile`
  await using scene = await openScene([round(makefile), round('touch x'), round(claimDone), round(makefile)])
  const unproved = await scene.run('--plain', '--rounds', '1', 'build X')
  expect(unproved.stdout).toContain('Nothing checks this goal. --prove checks each sentence.')
  const { exitCode, stdout } = await scene.run('--plain', '--verify', 'auto', 'build X')
  expect(exitCode).toBe(0)
  expect(stdout).toContain('test command of Makefile: make check; protects GNUmakefile, makefile, Makefile\n')
  expect(stdout).toContain('done, gates pass: verified by 1 gate; your request itself was not checked')
  expect(stdout).not.toContain('Nothing checks')
  const [created] = journalOf(scene, 2)
  expect(created).toMatchObject({ said: { verify: ['make check'] }, gates: [{ run: 'make check', required: true }] })
  expect((await scene.run('--plain', '--rounds', '1', 'build Y')).stdout).toContain(
    'Nothing checks this goal. --verify auto runs "make check"; --prove checks each sentence.',
  )
  expect((await scene.run('queue', 'add', '--verify', 'auto', 'build Z')).stdout).toBe(
    'Queued as 000001 (verified by make check): build Z\n',
  )
})

test('--verify auto without a test command is refused in one sentence, and begins nothing', async () => {
  await using scene = await openScene([])
  const { exitCode, stderr } = await scene.run('--verify', 'auto', 'build X')
  expect(exitCode).toBe(2)
  expect(stderr).toContain(
    '--verify auto found no test command in this project; name one, such as --verify "npm test". (CM0701)',
  )
  expect(existsSync(join(scene.place.directory, '.codemachine'))).toBe(false)
})

incident('false done', 'An agent that set `status: done`, and did nothing else, was done in round 1', {
  since: '2026-11-21',
  fixed: '2026-11-23',
  foundBy: 'a trial',
})
promise('D47')
test('an agent that sets the flag and does nothing else is refused, and done only once it has said in MAIN.md why', async () => {
  const reason = `printf '\\n## Why nothing is needed\\nX was built before, by \\033[31mhand\\n' >> ${folder}/MAIN.md`
  await using scene = await openScene([round(flagDone), round(flagDone), round(reason, flagDone)])
  const { exitCode, stdout } = await scene.run('--plain', 'build X')
  expect(exitCode).toBe(0)
  expect(scene.input(2)).toContain('no file has changed since the start of this goal')
  expect(scene.input(3)).toContain('MAIN.md does not say why nothing is needed')
  expect(eventsOf(journalOf(scene), 'done-refused').map(({ reason }) => reason)).toEqual([
    'nothing-done',
    'nothing-done',
  ])
  expect(stdout).toContain('The agent says it is done (MAIN.md), and that no work was needed: X was built before, by')
  expect(stdout).toMatch(/note +no file changed, and there are no tasks\..*\n? *.*X was built before/)
  expect(JSON.parse(scene.recorded('report.json')).proof.whyNothing).toContain('X was built before')
  expect(scene.memory('report.md')).toContain('X was built before')
})

promise('D4', 'Gates run in the sandbox of the rounds, never with more rights')
promise('E10', 'Gates run in the sandbox of the rounds')
test('a gate runs with no more rights than the agent: a test that reaches outside the sandbox does not get there', async () => {
  // Codex lets commands write to the temporary directory, but not to this one.
  const outside = mkdtempSync('/var/tmp/codemachine-test-')
  await using scene = await openRealScene([
    round(`printf 'echo gone > ${outside}/escaped && exit 0; echo held back; exit 5\\n' > check.sh`),
    round(claimDone),
  ])
  try {
    const { exitCode } = await scene.run('--json', '--rounds', '2', '--verify', 'sh check.sh', 'build X')
    expect(exitCode).toBe(3)
    expect(existsSync(join(outside, 'escaped'))).toBe(false)
    expect(eventsOf(journalOf(scene), 'gate-ended').at(-1)).toMatchObject({
      status: 'failed',
      exitCode: 5,
      output: expect.stringContaining('held back'),
    })
  } finally {
    rmSync(outside, { recursive: true })
  }
})

test('an agent that makes a gate flaky gets done, and it is said that the gate failed first', async () => {
  const flaky = '[ -e .git/ran ] && exit 0; touch .git/ran; echo unlucky; exit 1'
  await using scene = await openScene([round(`echo '${flaky}' > check.sh`), round(claimDone)])
  const { stdout, exitCode } = await scene.run('--plain', '--verify', 'sh check.sh', 'build X')
  expect(exitCode).toBe(0)
  expect(stdout).toMatch(/gate sh check\.sh.*flaky/)
  expect(JSON.parse(scene.recorded('done.json')).gates).toMatchObject([
    { status: 'flaky', exitCode: 1, before: 'failed' },
  ])
})

test('a gate that does not exist refuses done; one that changes files, and one that prints 100 MB, do no harm', async () => {
  await using scene = await openScene([
    round(claimDone),
    round(writeTasks([{ id: 'T1', name: 'find the gate', done: false }])),
  ])
  const gates = ['date +%s%N > made-by-gate', 'yes | head -c 100000000', 'no-such-gate']
  const verify = gates.flatMap(run => ['--verify', run])
  const { exitCode, events } = await scene.run('--json', '--rounds', '2', ...verify, 'build X')
  expect(exitCode).toBe(3)
  const atClaim = eventsOf(events, 'gate-ended').filter(({ when }) => when === 'claim')
  expect(atClaim).toMatchObject([
    { status: 'passed', changed: ['made-by-gate'], changedCount: 1 },
    { status: 'passed', changed: [] },
    { status: 'failed', exitCode: 127, output: expect.stringContaining('not found') },
  ])
  expect(atClaim[1]?.output.slice(0, 3000)).toBe('y\n'.repeat(1500))
  expect(eventsOf(events, 'done-refused')).toMatchObject([{ reason: 'gate-failed' }])
  expect(scene.input(2)).toContain('The check `no-such-gate` fails (exit code 127).')
  expect(eventsOf(events, 'round-ended').map(({ changed }) => changed)).toEqual([[], []])
})

promise('D10', 'No change of settings or ignore rules by a round gets around a review')
test('a round that empties the settings and hides files from git does not get around a review, not after a resume', async () => {
  await using scene = await openScene([
    round(": > codemachine.toml; echo '*' > tests/.gitignore; echo 'x = 1' > tests/conftest.py"),
    round(claimDone),
    [says(agrees)],
  ])
  const { directory } = scene.place
  const settings = 'review = true\n[[gates]]\nname = "tests"\nrun = "true"\nprotect = ["tests/**", "tset/**"]\n'
  await mkdir(join(directory, 'tests'))
  await writeFile(join(directory, 'tests/test_a.py'), 'def test_a(): pass\n')
  await writeFile(join(directory, 'codemachine.toml'), settings)
  const { stdout } = await scene.run('--plain', '--rounds', '1', 'build X')
  expect(stdout).toContain('gate tests: protect "tset/**" matches no file.')
  expect(await readFile(join(directory, 'codemachine.toml'), 'utf8')).toBe('')
  const { exitCode, events } = await scene.run('resume', '--json', '--rounds', '3')
  expect(exitCode).toBe(0)
  expect(eventsOf(journalOf(scene), 'protected-changed')).toMatchObject([
    { files: [{ path: 'tests/conftest.py', how: 'changed', gates: ['tests'] }] },
  ])
  expect(eventsOf(events, 'review-started').map(({ causes }) => causes)).toEqual([
    ['asked', 'protected', 'configuration'],
  ])
  expect(JSON.parse(scene.recorded('done.json'))).toMatchObject({
    verified: true,
    review: { agreed: true, reviews: 1 },
  })
})

promise('D11', 'A reviewer can write nothing, and what it finds again is left to the person after three reviews')
promise('E11', 'A reviewer judges a claim, and can write nothing')
test('a reviewer that never agrees, and cannot write, has the last word with a person, after three reviews', async () => {
  await using scene = await openRealScene([
    round('echo one > one.txt'),
    round(claimDone),
    [reply(shell('cat one.txt; touch x')), says(finds('It fails on nothing.'))],
    round(claimDone),
    [says(finds('Nobody can quit it.'))],
    round(claimDone),
    [says(finds('The docs are not true.'))],
  ])
  const { exitCode, stdout } = await scene.run('--plain', '--review', '--yolo', 'build X')
  expect(exitCode).toBe(4)
  const reviewed = scene.model.requests.filter(({ conversation }) => conversation === 2)
  expect(reviewed[0]?.userTexts.join('\n')).toContain('+one')
  // Which of the two streams codex reads first is left to chance.
  expect(reviewed[1]?.lastOutputs[0]).toMatch(/^one$/m)
  expect(reviewed[1]?.lastOutputs[0]).toContain('Read-only file system')
  expect(existsSync(join(scene.place.directory, 'x'))).toBe(false)
  expect(scene.hasRecorded('rounds/review-003.ndjson')).toBe(true)
  expect(scene.input(4)).toContain('- major: check.sh:1: It fails on nothing. Fix: Mend it.')
  expect(stdout).toContain('The reviewer does not agree that it is done (3 reviews)')
  expect(scene.hasRecorded('done.json')).toBe(false)
  expect(stdout).toMatch(/left .*The docs are not true/s)
})

/** Writes a test, and a gate that protects it. */
async function protectTests(directory: string): Promise<void> {
  await mkdir(join(directory, 'tests'))
  await writeFile(join(directory, 'tests/a.test.sh'), 'exit 0\n')
  await writeFile(
    join(directory, 'codemachine.toml'),
    '[[gates]]\nname = "tests"\nrun = "true"\nprotect = ["tests/**"]\n',
  )
}

incident('false done', 'New configuration, a planted helper or a program in `node_modules/.bin` made gates pass', {
  since: '2026-11-22',
  fixed: '2026-11-23',
  foundBy: 'a trial',
})
promise('D48')
test('an agent that plants configuration which the gates run through gets done only from a review that has seen it', async () => {
  await using scene = await openScene([
    round('echo "script-shell=/bin/true" > .npmrc', 'echo "grep() { true; }" > tests/helper.sh'),
    round(claimDone),
    [says(finds('The shell of the tests is /bin/true.'))],
    round('rm .npmrc tests/helper.sh', 'mkdir -p node_modules/.bin; echo exit > node_modules/.bin/grep'),
    round(claimDone),
    [says(agrees)],
  ])
  const { directory } = scene.place
  await protectTests(directory)
  await writeFile(join(directory, '.gitignore'), '.npmrc\nnode_modules\n')
  const { exitCode, stdout } = await scene.run('--plain', 'build X')
  expect(exitCode).toBe(0)
  const events = journalOf(scene)
  expect(eventsOf(events, 'gate-configuration').map(({ files }) => files.map(({ path }) => path).join())).toEqual([
    '',
    '.npmrc,tests/helper.sh',
    'node_modules/.bin',
  ])
  expect(eventsOf(events, 'review-started').map(({ causes }) => causes.join())).toEqual([
    'configuration',
    'configuration',
  ])
  expect(scene.input(3)).toContain('- .npmrc (added)\n- tests/helper.sh (added)')
  expect(scene.input(6)).toContain('- node_modules/.bin (changed)')
  expect(stdout).toContain('2 files in the configuration of the gates are new or changed since the start')
  expect(stdout).toMatch(/\n(?:note)? +1 file that gates run through: node_modules\/\.bin \(changed\)/)
})

test.each([
  [
    'replaces a module that a gate requires',
    'echo "process.exit(0)" > node_modules/runner/index.js',
    'node_modules/runner',
  ],
  ['plants a program in a virtual environment', 'echo "exit 0" > .venv/bin/check', '.venv/bin/check'],
])('an agent that %s, behind a gate that passed before, gets done only from a review', async (_, does, path) => {
  await using scene = await openScene([round(does), round(claimDone), [says(agrees)]])
  const { directory } = scene.place
  const files = {
    '.gitignore': 'node_modules\n.venv\n',
    'node_modules/runner/index.js': 'process.exitCode = 0\n',
    '.venv/pyvenv.cfg': '',
    '.venv/bin/check': 'true\n',
  }
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true })
    await writeFile(join(directory, name), text)
  }
  const gate = `node -e 'require("runner")' && sh .venv/bin/check`
  const { exitCode, events } = await scene.run('--json', '--verify', gate, 'build X')
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'review-started').map(({ causes }) => causes)).toEqual([['configuration']])
  expect(scene.input(3)).toContain(`- ${path} (changed)`)
})

promise('D9', "A protected file that differs from the session's start needs a review that has seen it")
test('an agent that deletes a test is flagged, and done waits for a review that has seen it', async () => {
  await using scene = await openScene([
    round('rm tests/a.test.sh'),
    round(claimDone),
    [says(finds('The test of a was deleted.'))],
    round('echo "exit 0" > tests/a.test.sh'),
    round(claimDone),
  ])
  const { directory } = scene.place
  await protectTests(directory)
  const { exitCode, stdout } = await scene.run('--plain', 'build X')
  expect(exitCode).toBe(0)
  const events = journalOf(scene)
  expect(eventsOf(events, 'protected-changed')[0]?.files).toEqual([
    { path: 'tests/a.test.sh', how: 'deleted', gates: ['tests'] },
  ])
  expect(scene.input(2)).toContain('tests/a.test.sh (deleted)')
  expect(scene.input(4)).toContain('The test of a was deleted.')
  expect(eventsOf(events, 'review-started').map(({ causes }) => causes)).toEqual([['protected']])
  expect(stdout).toContain('tests/a.test.sh')
})

incident('false done', 'A session was done whose certificate could not be written', {
  since: '2026-11-22',
  fixed: '2026-11-29',
  foundBy: 'a trial',
})
promise(
  'D70',
  'A session whose certificate cannot be written is not done, and says why; `resume` ends it, without a round',
)
test('a session whose certificate cannot be written is not done, and resume ends it as done, without a round, once it can', async () => {
  const blocked = '$HOME/.codemachine/state/*/sessions/*'
  await using scene = await openScene([round(`for each in ${blocked}; do mkdir "$each/done.json"; done`, claimDone)])
  const first = await scene.run('--rounds', '1', '--verify', 'true', 'build X')
  expect(first.exitCode).toBe(4)
  expect(first.stdout).toContain('The work was accepted, but its certificate')
  expect(first.stdout).toContain('done.json could not be written: EISDIR.')
  expect(first.stdout).not.toContain('ended: done')
  expect(scene.memory('MAIN.md')).not.toContain('status: done')
  expect(JSON.parse(scene.recorded('report.json')).outcome.kind).toBe('needs-person')
  expect((await scene.run('verify')).exitCode).not.toBe(0)
  rmSync(join(scene.records(), 'sessions', only(join(scene.records(), 'sessions')), 'done.json'), { recursive: true })
  const again = await scene.run('resume')
  expect([again.exitCode, again.stderr]).toEqual([0, ''])
  expect(scene.model.requests.map(({ conversation }) => conversation)).not.toContain(1)
  expect(JSON.parse(scene.recorded('done.json'))).toMatchObject({ verified: true, rounds: 1 })
})

function only(folder: string): string {
  const [name = ''] = readdirSync(folder)
  return name
}
