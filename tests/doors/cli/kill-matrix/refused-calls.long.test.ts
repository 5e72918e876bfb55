import { expect, test } from 'vitest'
import { type Ended, startCodemachine } from '../../../support/codemachine.ts'
import { processesOf } from '../../../support/processes.ts'
import { promise } from '../../../support/promise.ts'
import { randomFrom, SEED } from '../../../support/random.ts'
import { problemOfTracing, type RefusedCall, recordCalls, runRefused } from '../../../support/refused-call.ts'
import { goOnToDone, undisturbedTree } from './survive.ts'
import { openWork } from './work.ts'

const problem = problemOfTracing()
/** How many calls a run tries that plays a part of each matrix. */
const SAMPLE = 6

/** What the system answers, in turn. */
const ERRORS: Readonly<Record<string, readonly string[]>> = {
  fdatasync: ['EIO'],
  openat: ['EMFILE', 'ENOSPC', 'EIO'],
  clone: ['EAGAIN'],
  clone3: ['EAGAIN'],
  vfork: ['EAGAIN'],
}

promise(
  'R63',
  'If the system refuses one call, any write, sync, rename, open or start of a process, codemachine says one sentence at most, and resume comes to the same end',
)
test.skipIf(problem !== null)(
  `a session comes to the same end, whichever of its calls the system refuses once${problem === null ? '' : ` (skipped: ${problem})`}`,
  async () => {
    const tree = await undisturbedTree()
    const calls = await callsOfSession()
    const tried = process.env.SLICE === undefined ? calls : sampleOf(calls)
    const left = [...tried]
    const failures: string[] = []
    let refused = 0
    const lane = async () => {
      for (let call = left.shift(); call !== undefined; call = left.shift()) {
        const came = await refuse(call, tree).catch((error: Error) => error)
        if (came instanceof Error) failures.push(`${JSON.stringify(call)}: ${came.stack}`)
        else if (came) refused++
      }
    }
    await Promise.all([lane(), lane()])
    process.stdout.write(`${refused} of ${tried.length} calls were refused, of ${calls.length} in the session.\n`)
    expect(failures).toEqual([])
    expect(refused).toBeGreaterThan(tried.length / 2)
  },
  3_600_000,
)

async function callsOfSession(): Promise<RefusedCall[]> {
  await using scene = await openWork()
  const calls = await recordCalls(scene.place, ['--no-keep-awake', 'build X', '--json'])
  return calls.map((call, at) => {
    const errors = ERRORS[call.call] ?? ['EIO', 'ENOSPC']
    return { ...call, error: errors[at % errors.length] ?? '' }
  })
}

function sampleOf(calls: readonly RefusedCall[]): RefusedCall[] {
  const random = randomFrom(SEED)
  return Array.from({ length: SAMPLE }, () => random.one(calls as [RefusedCall, ...RefusedCall[]]))
}

/** Whether the session came to the call: the order of what happens at once is another each time. */
async function refuse(call: RefusedCall, tree: string): Promise<boolean> {
  await using scene = await openWork()
  let refused: string | null | undefined
  const run = async (line: readonly string[]): Promise<Ended> => {
    if (refused !== undefined) return await startCodemachine(scene.place, line).ended
    const ended = await runRefused(scene.place, line, call)
    refused = ended.refused
    const isEnded = ended.events.some(({ type }) => type === 'session-ended')
    // A session that has ended says why in its last event, and may say on stderr what could not be kept of that.
    const sentence = isEnded
      ? /^(?:codemachine: .+\n(?: {2}.+\n)?|.+\n)?$/
      : /^codemachine: .+ \(CM\d{4}\)\n(?: {2}.+\n)?$/
    expect(ended.stderr, refused ?? '').toMatch(sentence)
    expect(processesOf(scene.place), refused ?? '').toEqual([])
    return { ...ended, stderr: '' }
  }
  await goOnToDone(scene, run, tree, { stops: [2, 4] })
  return refused !== null
}
