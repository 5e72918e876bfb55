import { join } from 'node:path'
import type { Recorded } from '../src/core/events/events.ts'
import { OWN_TEMPLATES } from '../src/modes/registry.ts'
import { openQueue } from '../src/session/records/queue.ts'
import { openRecords } from '../src/session/records/records.ts'
import { makePlace } from '../tests/support/place.ts'
import { writePeer } from '../tests/support/scripted-peer.ts'
import { timeOf } from './cost.ts'
import { atMost, type Figure, shown } from './figure.ts'
import { playRounds } from './gap.ts'
import { median } from './median.ts'
import { ANSWER_VERSION } from './peers.ts'
import { BIN, runCodemachine, runCommand } from './run-command.ts'
import { STAMPED_TURN } from './stamps.ts'

const RUNS = 5
const TASKS = 500
const TASK_ROUNDS = 25
const PROMPTS = { few: 10, many: 100 }
const AGENTS = 10

/** What comes between two rounds where there are many tasks, against one. */
export async function tasks(): Promise<Figure[]> {
  const gaps = { one: [] as number[], all: [] as number[] }
  for (let run = 0; run < RUNS; run++) {
    gaps.one.push(await gapWithTasks(1))
    gaps.all.push(await gapWithTasks(TASKS))
  }
  const [one, all] = [median(gaps.one), median(gaps.all)]
  return [
    shown('gap between rounds with 1 task, scripted peer', one, 'ms'),
    shown(`the same with ${TASKS} tasks`, all, 'ms'),
    { what: `${TASKS} tasks against 1`, value: all / one, unit: 'x', target: atMost(1.5) },
  ]
}

/** The median gap of rounds each of which has one more of so many tasks done, and writes something else into the first. */
async function gapWithTasks(count: number): Promise<number> {
  await using place = await makePlace('')
  const stamps = join(place.root, 'stamps')
  const work = `
    const tasks = Array.from({ length: ${count} }, (_, n) => ({ id: 'T' + (n + 1), name: 'Part ' + n + ' of the work', details: 'What is to be done in part ' + n + ', in a sentence or two, as a planner writes it.' + (n > 0 ? '' : ' Round ' + round + ' has come.'), acceptanceCriteria: 'npm test -- part-' + n + ' passes', phase: 'Building', done: n < round - 1 && n > 0 }))
    writeFileSync(memory('tasks.json'), JSON.stringify({ tasks }, null, 2))`
  const turn = STAMPED_TURN({ stamps, rounds: TASK_ROUNDS, gitStatus: false, work })
  const peer = await writePeer(place.root, ANSWER_VERSION + MEMORY + turn)
  // The first round writes them all.
  return median((await playRounds(place, peer, stamps, TASK_ROUNDS)).slice(3))
}

/** What a session takes where many prompts wait, against few. */
export async function prompts(): Promise<Figure[]> {
  const before = await timeOfSession(PROMPTS.few)
  const many = await timeOfSession(PROMPTS.many)
  const few = median([before, await timeOfSession(PROMPTS.few)])
  return [
    shown(`a session of ${PROMPTS.few} that waited, scripted peer`, few, 'ms'),
    shown(`a session of ${PROMPTS.many} that waited`, many, 'ms'),
    { what: `${PROMPTS.many} prompts against ${PROMPTS.few}`, value: many / few, unit: 'x', target: atMost(1.5) },
  ]
}

/** The median time from the end of one session to that of the next, ms, where so many prompts wait at the start. */
async function timeOfSession(count: number): Promise<number> {
  await using place = await makePlace('')
  const { home, directory, env } = place
  const records = await openRecords({ directory, env, home, platform: process.platform, templates: OWN_TEMPLATES })
  const queue = openQueue(records.queue)
  for (let n = 0; n < count; n++) await queue.add(`Do part ${n}.`, new Date())
  const peer = await writePeer(place.root, `${ANSWER_VERSION}${MEMORY}${CLAIM}`)
  const { stdout } = await runCommand(process.execPath, [BIN, '--json', '--codex-bin', peer, 'Begin.'], 0, {
    cwd: directory,
    env,
  })
  const events = stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Recorded)
  const ends = events.flatMap(({ type, at }) => (type === 'session-ended' ? [Date.parse(at)] : []))
  if (ends.length !== count + 1) throw new Error(`${ends.length} sessions have ended of ${count + 1}.`)
  return median(ends.slice(1).map((end, n) => end - (ends[n] ?? Number.NaN)))
}

/** What agents take that are called at once, against one that is called alone. */
export async function agents(): Promise<Figure[]> {
  await using place = await makePlace('')
  const peer = await writePeer(place.root, ANSWER_VERSION)
  await runCodemachine(['--json', '--rounds', '1', '--codex-bin', peer, 'Begin.'], 3, {
    cwd: place.directory,
    env: place.env,
  })
  const call = [process.execPath, BIN, '--codex-bin', peer, '--agent', 'backend-dev', 'Say hello.'] as const
  const all = `for n in $(seq ${AGENTS}); do "$@" & done; wait`
  const times = { one: [] as number[], all: [] as number[] }
  for (let run = 0; run <= RUNS; run++) {
    const one = await timeOf(place, call[0], call.slice(1), 0)
    const each = (await timeOf(place, 'bash', ['-c', all, 'bash', ...call], 0)) / AGENTS
    // The first run fills the caches.
    if (run === 0) continue
    times.one.push(one)
    times.all.push(each)
  }
  const [one, each] = [median(times.one), median(times.all)]
  return [
    shown('one agent that is called alone, on the processor', one, 'ms'),
    shown(`each of ${AGENTS} at once`, each, 'ms'),
    { what: `each of ${AGENTS} against one alone`, value: each / one, unit: 'x', target: atMost(1.5) },
  ]
}

/** Gives a scripted peer the path of a memory file of the session that began last. */
const MEMORY = `
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
const counter = id => Number(id.split('_')[1])
const memory = name => {
  const [last] = readdirSync('.codemachine/projects').sort((a, b) => counter(b) - counter(a))
  return '.codemachine/projects/' + last + '/' + name
}
`

/** Its only round finds that nothing is needed. */
const CLAIM = `
on['turn/start'] = id => {
  send({ id, result: { turn: { id: TURN } } })
  started()
  const main = readFileSync(memory('MAIN.md'), 'utf8')
  writeFileSync(memory('MAIN.md'), main.replace('finite_incantatem: false', 'finite_incantatem: true') + '\\n## Why nothing is needed\\n\\nIt is there.\\n')
  completed()
}
`
