import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import type { Gate } from '../../src/core/events/outcome.ts'
import { emptyState } from '../../src/core/state/state.ts'
import { openFingerprints } from '../../src/workspace/fingerprint/fingerprint.ts'
import { lookBySessionRules } from '../../src/workspace/fingerprint/session-rules.ts'
import { findRepository } from '../../src/workspace/git/git.ts'
import { openRepositoryGuard } from '../../src/workspace/guard/repository-guard.ts'
import { createSessionFolder } from '../../src/workspace/memory/session-folder.ts'
import { openMemory } from '../../src/workspace/memory/session-memory.ts'
import { openSavepoints } from '../../src/workspace/savepoints/savepoint-writer.ts'
import { playSession } from '../support/played-session.ts'
import { promise } from '../support/promise.ts'
import { type Random, randomFrom, SEED } from '../support/random.ts'
import { ANSWER, CLAIM, randomAct } from '../support/random-agent.ts'
import { worked } from '../support/session-events.ts'
import { contentOf } from '../support/work-content.ts'

vi.setConfig({ testTimeout: 1_200_000 })

const ACTS = 1_000
/** In rounds of so many acts, and sessions of so many rounds. */
const ACTS_OF_ROUND = 3
const ROUNDS = 8
/** What a look, a read or a savepoint may take on a busy machine; nothing in them waits for anything. */
const DOOR_MS = 60_000
/** What a person has git ignore from the start. */
const IGNORED = ['kept-out']
const GATE: Gate = {
  name: 'answer',
  run: `grep -qx right ${ANSWER}`,
  timeoutMs: 60_000,
  required: true,
  network: false,
  everyRound: false,
  protect: [],
}

interface Night extends Disposable {
  base: string
  work: string
  canary: string
  outside: string
  env: NodeJS.ProcessEnv
}

function openNight(): Night {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'random-agent-')))
  const [work, outside, home, records] = ['work', 'outside', 'home', 'records'].map(each => join(base, each))
  if (!work || !outside || !home || !records) throw new Error('there are four folders')
  for (const folder of [work, outside, home, join(records, 'rounds')]) mkdirSync(folder, { recursive: true })
  writeFileSync(join(outside, 'kept'), 'kept')
  const env = { ...process.env, HOME: home, XDG_CONFIG_HOME: join(home, '.config') }
  writeFileSync(join(home, '.gitconfig'), '[user]\n\tname = A\n\temail = a@b.c\n')
  const git = (...args: string[]) => execFileSync('git', args, { cwd: work, env, stdio: 'ignore' })
  git('init', '-q')
  writeFileSync(join(work, 'README.md'), '# A project\n')
  writeFileSync(join(work, '.gitignore'), `${IGNORED.join('\n')}\n`)
  git('add', '.')
  git('commit', '-qm', 'Start')
  return {
    ...{ base, work, outside, env, canary: join(base, 'canary') },
    [Symbol.dispose]: () => {
      // Folders that the agent has closed.
      spawnSync('chmod', ['-R', 'u+rwX', base])
      rmSync(base, { recursive: true, force: true })
    },
  }
}

/** Resolves with what a door gives; rejects if it hangs. */
async function bounded<T>(door: string, work: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`${door} hangs`)), DOOR_MS)
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

/** One session on the real work directory, its memory, guard and savepoints; only codex is played. */
async function playNight(random: Random, told: string[]): Promise<{ acts: number; verified: boolean }> {
  using night = openNight()
  const { base, work, env, canary, outside } = night
  const records = join(base, 'records')
  const session = { directory: work, id: '20261120_1', records: join(records, 'session') }
  const place = await createSessionFolder({
    ...session,
    goal: 'Find the answer.',
    git: { commit: null, branch: null },
    redact: text => text,
  })
  const repository = await findRepository(work)
  const fingerprints = await openFingerprints({ gitDir: join(records, 'git'), directory: work, repository, env })
  const state = { ...emptyState(session.id), goal: 'Find the answer.', gates: [GATE] }
  const looks = lookBySessionRules(fingerprints, {
    path: join(records, 'ignore-rules'),
    ending: new AbortController().signal,
    state: () => state,
    onRemark: () => {},
  })
  await using savepoints = openSavepoints(fingerprints, { onWarning: () => {} })
  const memory = openMemory({ folder: place.folder, directory: work, lastGood: place.lastGood })
  const guard = await openRepositoryGuard({
    repository,
    workTree: work,
    leaveOut: [records],
    reach: { env, sandbox: 'workspace-write' },
    setAsideDir: join(records, 'set-aside'),
    baselineFile: join(records, 'guard.json'),
  })
  let acts = 0
  let before: Record<string, string> = {}
  const round = () => {
    before = contentOf(work, IGNORED)
    // Now and then it only says that all is done.
    const claims = random.below(3) === 0
    for (let n = 0; n < (claims ? 1 : ACTS_OF_ROUND); n++) {
      const act = claims ? CLAIM : randomAct(random, { canary, outside })
      told.push(act)
      acts++
      spawnSync('timeout', ['-s', 'KILL', '5', 'sh', '-c', act], {
        cwd: work,
        env: { ...env, AGENT: 'yes', M: place.folder },
      })
    }
    return worked
  }
  const isTrue = () => {
    const path = join(work, ANSWER)
    return spawnSync('timeout', ['2', 'grep', '-qx', 'right', path]).status === 0
  }
  const { outcome, events } = await playSession([round], {
    folder: join(records, 'rounds'),
    limits: { rounds: ROUNDS, timeMs: null, tokens: null },
    begun: { gates: [GATE] },
    tree: () => bounded('the fingerprint', looks.take()),
    memory: () => bounded('the memory', memory.read()),
    onWithdraw: () => bounded('taking back a claim', memory.withdrawClaim()),
    guard: { check: () => bounded('the guard', guard.check()) },
    savepoint: async ({ round, tree }) => {
      look(night)
      return (
        (await bounded('the savepoint', savepoints.keep({ session: session.id, round, tree, at: Date.now() }))) !== null
      )
    },
    gate: () => ({ status: isTrue() ? 'passed' : 'failed', exitCode: isTrue() ? 0 : 1 }),
  })
  expect(['limit', 'done', 'needs-person']).toContain(outcome.kind)
  await bounded('the guard', guard.check())
  await guard.close()
  look(night)
  expect(existsSync(canary), 'what the agent planted has run').toBe(false)
  // What the agent writes through a link of its own is no fault: its commands run without a sandbox here.
  const linked = told.findIndex(act => act.includes(`${outside}/kept $M/`))
  if (linked === -1 || !told.slice(linked).some(act => act.includes('> $M/')))
    expect(readFileSync(join(outside, 'kept'), 'utf8').trim()).toMatch(/^(kept|right|wrong|\d)$/)
  const verified = outcome.kind === 'done' && outcome.verified
  if (verified) {
    expect(isTrue(), 'verified, and not true').toBe(true)
    expect(contentOf(work, IGNORED), 'the round that claimed done changed the work').toEqual(before)
    const last = events.filter(event => event.type === 'round-ended').at(-1)
    expect(last?.treeBefore).toBe(last?.treeAfter)
    expect(await bounded('the fingerprint', looks.take())).toBe(last?.treeAfter)
  }
  return { acts, verified }
}

/** The person comes by between two rounds, and looks. */
function look({ work, env }: Night): void {
  for (const args of [['status'], ['-C', 'sub', 'status'], ['log', '-1', '-p']])
    spawnSync('timeout', ['-s', 'KILL', '3', 'git', ...args], { cwd: work, env, stdio: 'ignore' })
}

promise(
  'B90',
  'Whatever an agent does at random to files, git, memory and configuration, nothing hangs, nothing of it runs outside, and nothing false is verified',
)
test('an agent that does a thousand things at random hangs nothing, has nothing run, and no false claim is verified', async () => {
  let acts = 0
  let verified = 0
  for (let nth = 0; acts < ACTS; nth++) {
    const told: string[] = []
    try {
      const night = await playNight(randomFrom(SEED + nth), told)
      acts += night.acts
      if (night.verified) verified++
    } catch (error) {
      const message = error instanceof Error ? error.stack : String(error)
      throw new Error(`${message}\nThe night ${nth} with SEED=${SEED}:\n${told.join('\n')}`, { cause: error })
    }
  }
  process.stdout.write(`${acts} acts, ${verified} nights verified\n`)
})
