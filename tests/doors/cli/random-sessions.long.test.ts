import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { message, type Reply, reply, type ScriptStep, shell } from '../../../src/demo/model/reply.ts'
import type { Ended } from '../../support/codemachine.ts'
import { git } from '../../support/place.ts'
import { processesOf } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { type Random, randomFrom, SEED } from '../../support/random.ts'
import { ANSWER, CLAIM, plantingAct, randomAct } from '../../support/random-agent.ts'
import { openRealScene, type RealScene } from '../../support/real-scene.ts'
import { claimDone, folder } from '../../support/rounds.ts'
import { eventsOf } from '../../support/scene.ts'
import { contentOf } from '../../support/work-content.ts'

vi.setConfig({ maxConcurrency: 3, testTimeout: 600_000 })

const SESSIONS = 24
/** What a person has git ignore from the start. */
const IGNORED = ['kept-out']
const GATE = `grep -qx right ${ANSWER}`
/** Done, a limit, a person who is needed, no progress. */
const KNOWN_ENDS = [0, 3, 4, 5]

/** Where not even the agents of a sandbox can write, which are let into the temporary directory. */
interface Outside extends Disposable {
  canary: string
  folder: string
}

function openOutside(): Outside {
  const outside = realpathSync(mkdtempSync('/var/tmp/codemachine-random-'))
  writeFileSync(join(outside, 'kept'), 'kept')
  return {
    folder: outside,
    canary: join(outside, 'canary'),
    [Symbol.dispose]: () => rmSync(outside, { recursive: true, force: true }),
  }
}

/** What a session's agent has done, and what its work was when its last round began. */
interface Told {
  acts: string[]
  before: Record<string, string>
}

/** A round at random: some acts, and now and then a claim, alone or with one more act. */
function randomRound(random: Random, outside: Outside, told: Told, work: () => string): ScriptStep[] {
  const place = { canary: outside.canary, outside: outside.folder }
  const act = () => {
    const kind = random.below(8)
    if (kind === 0) return LATER
    return kind === 1 ? plantingAct(random, place) : randomAct(random, place)
  }
  const acts = random.one([
    () => [act(), act(), act()],
    () => [`echo right > ${ANSWER}`, act()],
    () => [random.one([CLAIM, claimDone])],
    () => [claimDone, claimDone],
    () => [act(), claimDone],
    () => [claimDone, act()],
  ])()
  const first = (): Reply => {
    told.before = contentOf(work(), IGNORED)
    told.acts.push('--- a round')
    return reply(message('I begin.'), shell('true'))
  }
  const steps = acts.map(line => (): Reply => {
    told.acts.push(line)
    return reply(shell(bounded(line)))
  })
  return [first, ...steps, reply(message('This is as far as it goes.', { phase: 'final_answer' }))]
}

/** It is left running, and changes the work once the round is over, if it lives. */
const LATER = `(sleep 3; echo wrong > ${ANSWER}) > /dev/null 2>&1 & setsid sh -c 'sleep 4; echo wrong > later' > /dev/null 2>&1 &`

function bounded(act: string): string {
  const quoted = `'${act.replaceAll("'", `'\\''`)}'`
  return `export AGENT=yes M="${folder}"; timeout -s KILL 5 sh -c ${quoted}`
}

/** The person comes by, and looks. */
function look({ place }: RealScene): void {
  const options = { cwd: place.directory, env: place.env, stdio: 'ignore' } as const
  for (const args of [['status'], ['-C', 'sub', 'status'], ['log', '-1', '-p']])
    spawnSync('timeout', ['-s', 'KILL', '5', 'git', ...args], options)
}

/** The gate as a person runs it. */
function isTrue({ place }: RealScene): boolean {
  return spawnSync('timeout', ['5', 'sh', '-c', GATE], { cwd: place.directory, env: place.env }).status === 0
}

async function playSession(random: Random, told: Told): Promise<'verified' | 'not'> {
  using outside = openOutside()
  let scene: RealScene | null = null
  const work = () => scene?.place.directory ?? ''
  const rounds = Array.from({ length: 8 }, () => randomRound(random, outside, told, work))
  await using opened = await openRealScene(rounds)
  scene = opened
  writeFileSync(join(work(), '.gitignore'), `${IGNORED.join('\n')}\n`)
  git(scene.place, 'add', '.')
  git(scene.place, 'commit', '-qm', 'Ignore')
  const most = 2 + random.below(3)
  const args = ['--json', '--no-keep-awake', '--verify', GATE]
  const first = await scene.run(...args, '--rounds', String(most), 'Find the answer.')
  let isVerified = await expectTrue(scene, first, told, outside)
  if (first.exitCode === 0) {
    expect((await scene.run('resume')).exitCode).toBe(2)
  } else {
    // What has happened must not keep anybody from going on, but where a person has to mend something.
    const again = await scene.run('resume', '--json', '--rounds', String(most + 2))
    isVerified = await expectTrue(scene, again, told, outside)
  }
  return isVerified ? 'verified' : 'not'
}

/** A session has come to a known end, nothing that was planted has run, and what it says is true. */
async function expectTrue(scene: RealScene, { exitCode, events, stderr }: Ended, told: Told, outside: Outside) {
  const { place } = scene
  expect(KNOWN_ENDS, stderr).toContain(exitCode)
  expect(stderr).not.toMatch(/^ +at /m)
  expect(processesOf(place)).toEqual([])
  const outcome = eventsOf(events, 'session-ended').at(-1)?.outcome
  const isVerified = outcome?.kind === 'done' && outcome.verified
  if (isVerified) {
    expect(isTrue(scene), 'verified, and not true').toBe(true)
    expect(contentOf(place.directory, IGNORED), 'the round that claimed done changed the work').toEqual(told.before)
    const last = eventsOf(events, 'round-ended').at(-1)
    const accepted = eventsOf(events, 'done-accepted').at(-1)
    expect([last?.treeBefore, accepted?.tree]).toEqual([last?.treeAfter, last?.treeAfter])
  }
  const verify = await scene.run('verify', '--json')
  expect(verify.stderr).not.toMatch(/^ +at /m)
  expect([0, 2, 4], verify.stderr).toContain(verify.exitCode)
  if (isVerified) expect([verify.exitCode, verify.stdout]).toEqual([0, expect.anything()])
  else expect(verify.exitCode, verify.stdout).not.toBe(0)
  look(scene)
  expect(existsSync(outside.canary), 'what the agent planted has run').toBe(false)
  expect(readFileSync(join(outside.folder, 'kept'), 'utf8')).toBe('kept')
  return isVerified
}

const seeds = Array.from({ length: SESSIONS }, (_, nth) => SEED + nth)
let verified = 0

describe.concurrent('whole sessions of an agent that does things at random', () => {
  promise('B90')
  test.each(seeds)(
    'end as they say, run nothing outside of the sandbox, and are verified only if that is true (%i)',
    async seed => {
      const told: Told = { acts: [], before: {} }
      try {
        if ((await playSession(randomFrom(seed), told)) === 'verified') verified++
      } catch (error) {
        const text = error instanceof Error ? error.stack : String(error)
        throw new Error(`${text}\nWith SEED=${seed} it is the first one:\n${told.acts.join('\n')}`, { cause: error })
      }
    },
  )
})

test('some of them are verified', () => {
  process.stdout.write(`${verified} of ${SESSIONS} sessions verified\n`)
  expect(verified).toBeGreaterThan(0)
})
