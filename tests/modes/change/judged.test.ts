import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Recorded } from '../../../src/core/events/events.ts'
import { LINES_LOOK } from '../../../src/modes/change/execution/fold.ts'
import { planMarkdown } from '../../../src/modes/change/plan-text.ts'
import { LOOKS } from '../../../src/modes/change/states/planning.ts'
import { answering, type ChangePlay, changeAfter, planOf, playChange } from '../../support/change-session.ts'
import { check, task } from '../../support/change-work.ts'
import { ofType, type Play } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'

let folder: string
let tree: number
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-change-'))
  tree = 0
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const GOOD = planOf()
const EDITED = planOf({ description: 'Count the requests of each key.' })
/** By rules alone they are none that can be carried out. */
const WEAK = planOf({ verification: [{ run: 'sudo true', why: 'it is sure to pass' }] })
const FINE = [task('T1'), check('T2', 'grep -q limit api.js')]
const WRONG = { tasks: [task('T1', { inputs: { a: 'T9.x' } }), check('T2', 'sudo true')] }

/** An agent that does what each round is for; `first`: what it answers to the first rounds. */
function agent(...first: unknown[]): Play {
  return async played => {
    const { input } = played.run
    if (/^Plan this|^Cut the/.test(input) && first.length > 0) return await answering(first.shift())(played)
    if (input.startsWith('Plan this')) return await answering(GOOD)(played)
    if (input.startsWith('Cut the')) return await answering({ tasks: FINE })(played)
    if (input.startsWith('Task ')) return await answering({ outputs: {} }, async () => void tree++)(played)
    return await answering('It is done.')(played)
  }
}

async function play(plays: Play, { looks, ...options }: Partial<ChangePlay> = {}) {
  return await playChange([plays], {
    folder,
    tree: () => `tree ${tree}`,
    looks: { [LINES_LOOK]: async () => ({}), [LOOKS.edited]: async () => ({ plan: EDITED }), ...looks },
    command: () => (tree > 0 ? {} : { status: 'failed', exitCode: 1, output: 'not yet' }),
    ...options,
  })
}

promise(
  'C26',
  'Whether an answer can be used is judged once, when it comes, and journaled; a journal of another version keeps its verdicts, and one without them has at most an answer asked for again',
)
test('whether an answer can be used is judged once, and the journal says so: a fold of any version believes that', async () => {
  const { events } = await play(agent(WEAK, GOOD, WRONG, { tasks: FINE }), { says: [['accept']] })
  expect(ofType(events, 'answer-refused').map(({ name, problem }) => [name, problem])).toEqual([
    ['plan', expect.stringContaining('`verification[0].run` uses `sudo`')],
    ['tasks', expect.stringContaining('there is no task "T9"')],
  ])
  expect(ofType(events, 'answer-given').map(({ name, judged }) => [name, judged])).toEqual([
    ['plan~2', true],
    ['tasks', true],
    ['T1', true],
  ])
  // As a version has journaled them whose rules were others.
  const looser = events.map(event =>
    event.type === 'answer-given' && event.name === 'tasks' ? { ...event, value: WRONG } : event,
  )
  const last = looser.findIndex(event => event.type === 'answer-given' && event.name === 'tasks') + 1
  expect(changeAfter(looser.slice(0, last)).execution).toMatchObject({
    tasks: WRONG.tasks.map(spec => ({ spec })),
    problem: null,
    isUnjudged: false,
  })
})

/** A journal as it was before `answer-given` said that it was judged: what rules refused came as given, and files as texts. */
function asBefore(events: readonly Recorded[]): Recorded[] {
  const { output } = ofType(events, 'answer-given')[0] ?? { output: null }
  if (output === null) throw new Error('Nothing was answered.')
  return events.map(event => {
    switch (event.type) {
      case 'answer-given': {
        const { judged: _, ...rest } = event
        return rest
      }
      case 'answer-refused': {
        const { problem: _, ...rest } = event
        return { ...rest, type: 'answer-given', output, value: event.name.startsWith('tasks') ? WRONG : WEAK }
      }
      case 'looked': {
        if (event.what !== LOOKS.edited) return event
        const isRefused = 'problem' in Object(event.result)
        return { ...event, result: { text: planMarkdown(isRefused ? WEAK : EDITED) } }
      }
      default:
        return event
    }
  })
}

promise('C26')
test('of a journal that does not say what was judged, what came after an answer says so: at most it is asked for again', async () => {
  const edits = [{ problem: 'Line 9: the command uses `sudo`.' }, { plan: EDITED }]
  const whole = await play(agent(WEAK, GOOD, WRONG, WRONG, { tasks: FINE }), {
    says: [['edit'], ['edit'], ['accept']],
    looks: { [LOOKS.edited]: async () => edits.shift() },
  })
  expect(whole.outcome).toMatchObject({ kind: 'done' })
  const before = asBefore(whole.events)
  const kept = ({ planning, execution }: ReturnType<typeof changeAfter>) => [planning.versions, execution.tasks]
  expect(kept(changeAfter(before))).toEqual(kept(changeAfter(whole.events)))
  expect(changeAfter(before).execution.made).toBe(2)
  const isOfOne = (event?: Recorded) => event?.type === 'answer-given' || event?.type === 'looked'
  for (let many = 1; many < before.length; many++) {
    const journal = before.slice(0, many)
    changeAfter(journal)
    if (!journal.slice(-3).some(isOfOne)) continue
    tree = ofType(journal, 'round-ended').filter(({ treeBefore, treeAfter }) => treeBefore !== treeAfter).length
    const { outcome, events } = await play(agent(), {
      journal,
      onEvent: (event, { runner }) => void (event.type === 'decision-asked' && runner.decide('accept', null)),
    })
    const after = `after ${journal.at(-1)?.type} (${many})`
    expect(outcome, after).toMatchObject({ kind: 'done' })
    const { planning, execution } = changeAfter([...journal, ...events])
    expect(planning.versions.map(({ plan }) => plan.verification[0]?.run).includes('sudo true'), after).toBe(false)
    expect(execution.tasks.map(({ spec, status }) => [spec, status])).toEqual(FINE.map(spec => [spec, 'COMPLETED']))
    expect(
      ofType(events, 'command-ran').map(({ name }) => name),
      after,
    ).not.toContain('sudo true')
  }
})
