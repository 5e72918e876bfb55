import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { reply, shell } from '../../../src/demo/model/reply.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, round, says } from '../../support/rounds.ts'
import { eventsOf, openScene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'

const GOAL = 'Write slug.sh, which prints its argument in small letters. Keep readme.txt as it is. It should feel nice.'

const check = (run: string, files: Record<string, string> = {}) => ({
  run,
  seconds: 5,
  needs: null,
  files: Object.entries(files).map(([path, text]) => ({ path, text })),
})

const SLUG_TEST = '[ "$(sh slug.sh AbC)" = abc ] && [ "$(sh slug.sh XY)" = xy ] || { echo not small; exit 1; }\n'

const must = (...checks: object[]) => ({
  quote: 'Write slug.sh, which prints its argument in small letters.',
  kind: 'must',
  reason: null,
  checks: checks.length > 0 ? checks : [check('sh {files}/slug.test.sh', { 'slug.test.sh': SLUG_TEST })],
})
const KEEP = {
  quote: 'Keep readme.txt as it is.',
  kind: 'keep',
  reason: null,
  checks: [check('grep -qx hello readme.txt')],
}
const TASTE = { quote: 'It should feel nice.', kind: 'not-checkable', reason: 'It is taste.', checks: [] }

const contract = (...sentences: object[]) => says(JSON.stringify({ sentences }))
const controls = (...edits: { path: string; find: string | null; text: string }[]) =>
  says(JSON.stringify({ versions: edits.map(edit => ({ summary: 'Wrong.', edits: [edit] })) }))

const SLUG = `echo 'echo "$1" | tr A-Z a-z' > slug.sh`
const BROKEN = controls({ path: 'slug.sh', find: 'A-Z a-z', text: 'A-C a-c' })
const CHANGED = controls({ path: 'readme.txt', find: null, text: 'bye\n' })

promise('E37', 'A goal is proved sentence by sentence, by checks that the worker cannot read')
test('a claim that misses a sentence is refused, and done is proved once wrong versions are caught', async () => {
  const spy =
    'cat $HOME/.codemachine/state/*/sessions/*/journal.ndjson; grep -rl "not smal[l]" $CODEX_HOME; ls -a .codemachine'
  await using scene = await openRealScene([
    [contract(must(), KEEP, TASTE)],
    [reply(shell(spy)), reply(shell('echo echo abc > slug.sh')), says('So far.')],
    round(claimDone),
    round(SLUG),
    round(claimDone),
    [BROKEN],
    [CHANGED],
  ])
  const { directory } = scene.place
  await writeFile(join(directory, 'readme.txt'), 'hello\n')
  const { exitCode, stdout, stderr } = await scene.run('--json', '--prove', GOAL)
  expect([exitCode, stderr]).toEqual([0, ''])
  const events = stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  const [frozen] = eventsOf(events, 'contract-frozen')
  expect(frozen).toMatchObject({
    version: 1,
    by: 'default',
    problem: null,
    heldOut: [expect.stringMatching(/^S[12]$/)],
  })
  expect(eventsOf(events, 'done-refused')[0]?.detail).toContain('S1 does not hold yet')
  expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'done', proof: 'proved' } }])
  // The worker has found neither the journal, nor what the author said, nor files of a check.
  const [seen = ''] =
    scene.model.requests.find(({ conversation, step }) => conversation === 1 && step === 1)?.lastOutputs ?? []
  expect(seen).toContain('projects')
  expect(seen).not.toContain('contract-drafted')
  expect(seen).not.toMatch(/^checks$|\.jsonl/m)
  expect(readdirSync(join(directory, '.codemachine'))).not.toContain('checks')
  expect(scene.memory('CONTRACT.md')).toContain('Its checks are not shown.')
})

promise('D82', 'A check, and a wrong version, runs on a copy of the tree: nothing that it does touches your files')
test('a check that deletes files, one that never ends and one that needs the network do no harm', async () => {
  const bad = must(
    check('rm -rf ./* && false'),
    { ...check('sleep 100'), seconds: 1 },
    check('curl -s http://127.0.0.1:9 || exit 1'),
  )
  await using scene = await openScene([
    [contract(bad, KEEP, TASTE)],
    [contract(bad, KEEP, TASTE)],
    [contract(must(), KEEP, TASTE)],
    round(SLUG),
    round(claimDone),
    [BROKEN],
    [CHANGED],
  ])
  const readme = join(scene.place.directory, 'readme.txt')
  await writeFile(readme, 'hello\n')
  const { exitCode, stdout } = await scene.run('--plain', '--prove', GOAL)
  expect(exitCode).toBe(0)
  expect(existsSync(readme)).toBe(true)
  expect(stdout).toContain('S1, check 2: timed out before the work')
  expect(scene.input(2)).toContain('check 2 does not finish in time')
  expect(stdout).toContain('contract, version 3, is accepted')
  expect(stdout).toContain('wrong version 1 for S2: caught by check 1')
  expect(stdout).toMatch(/ended: done and proved: 2 of 2 sentences proved/)
  expect(scene.memory('report.md')).toMatch(
    /^# Done and proved[\s\S]*^## What you asked for[\s\S]*\| S1 \| .* \| proved \|/m,
  )
  const kept = join(scene.place.directory, 'kept')
  expect((await scene.run('contract', '--export', kept)).stdout).toContain('Wrote 2 checks to')
  expect(readFileSync(join(kept, 'S1-1', 'slug.test.sh'), 'utf8')).toBe(SLUG_TEST)
  expect(execFileSync('sh', ['kept/S1-1/run.sh'], { cwd: scene.place.directory, encoding: 'utf8' })).toBe('')
  expect(JSON.parse(scene.recorded('done.json'))).toMatchObject({
    v: 2,
    verified: true,
    proof: 'proved',
    contract: {
      version: 3,
      acceptedBy: 'default',
      providers: { author: null, control: null, worker: null },
      sentences: [
        {
          id: 'S1',
          state: 'proved',
          controls: { made: 1, caught: 1 },
          checks: [{ before: 'failed', status: 'passed' }],
        },
        { id: 'S2', state: 'proved' },
        { id: 'S3', state: 'not-checkable', reason: 'It is taste.' },
      ],
    },
  })
  expect((await scene.run('verify')).exitCode).toBe(0)
  await writeFile(join(scene.place.directory, 'slug.sh'), 'echo abc\n')
  const broken = await scene.run('verify')
  expect(broken.exitCode).toBe(4)
  expect(broken.stdout).toContain('S1, check 1: fails')
  expect(readdirSync(join(scene.place.directory, '.codemachine'))).not.toContain('checks')
  expect((await scene.run('contract')).stdout).toMatch(/2 of 2 sentences proved\nS1 {2}proved {2}\(must be true\)\n/)
})
