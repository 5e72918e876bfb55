import { readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Recorded } from '../../../src/core/events/events.ts'
import { planText } from '../../../src/modes/change/plan-text.ts'
import { lastVersion } from '../../../src/modes/change/states/planning.ts'
import type { StateName } from '../../../src/modes/change/work.ts'
import {
  answering,
  breakingIn,
  type ChangePlay,
  changeAfter,
  planOf,
  playChange,
  SESSION_FOLDER,
  sessionAfter,
  statesIn,
} from '../../support/change-session.ts'
import { endsAs, ofType, type Play, type PlayOptions } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'

type OnEvent = NonNullable<PlayOptions['onEvent']>

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-change-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const pathOf = (name: string) => join(folder, SESSION_FOLDER, name)
const file = (name: string) => readFile(pathOf(name), 'utf8')
const [FIRST, SECOND] = [planOf(), planOf({ description: 'Count the requests in Redis.' })]
const planned = { kind: 'planned' }
const bodies = (events: readonly Recorded[]) => ofType(events, 'decision-asked').map(({ body }) => body)
const choices = (events: readonly Recorded[]) =>
  ofType(events, 'decision-asked').map(asked => asked.choices.map(({ id }) => id))
const versions = (events: readonly Recorded[]) => changeAfter(events).planning.versions

/** Plays a change until its plan is accepted. */
async function plan(plays: readonly Play[], { change, ...options }: Partial<ChangePlay> = {}) {
  return await playChange(plays, { folder, change: { planOnly: true, ...change }, ...options })
}

const REVIEWING = ['GATHERING_CONTEXT', 'GENERATING_PLAN', 'REVIEWING_PLAN.user-review']
const SHOWN = ['REVIEWING_PLAN.user-review', 'REVIEWING_PLAN.manual-review']
const CHANGED = ['REVIEWING_PLAN.rejected', 'REVIEWING_PLAN.refinement', ...SHOWN]

test('a plan is made of what was gathered, and is carried out once a person accepts it', async () => {
  const { outcome, events, inputs } = await plan([answering(FIRST)], { says: [['accept']] })
  expect(outcome).toEqual(planned)
  expect(statesIn(events)).toEqual([...REVIEWING, 'REVIEWING_PLAN.manual-review', 'REVIEWING_PLAN.accepted'])
  expect(inputs).toHaveLength(1)
  expect(inputs[0]).toMatch(/word for word:\n\nlimit the rate of requests\n\nMaterial to work with: "the project"/)
  expect(inputs[0]).toContain('A web server.')
  expect(await file('context.md')).toBe('# The project\n\nA web server.\n')
  expect(await file('plan/v1.md')).toBe(planText(lastVersion(changeAfter(events).planning)))
  const [asked] = ofType(events, 'decision-asked')
  expect(asked).toMatchObject({
    id: 'plan',
    default: null,
    file: `${SESSION_FOLDER}/plan/v1.md`,
    title: 'Version 1 of the plan is ready. Carry it out?',
  })
  expect(asked?.body).toContain('Count the requests of each client.')
  expect(asked?.body).toContain(
    '## What will count as proof\n\nIf you accept this plan, you accept these commands as proof',
  )
  expect(choices(events)).toEqual([['accept', 'change', 'edit', 'stop']])
  const { accepted } = changeAfter(events).planning
  expect(accepted).toMatchObject({ version: 1, by: 'person', remark: null })
  expect(accepted?.sha256).toBe(versions(events)[0]?.sha256)
})

const checking = (...runs: string[]) => planOf({ verification: runs.map(run => ({ run, why: 'it shows the limit' })) })
const passing = (...runs: string[]): Partial<ChangePlay> => ({
  command: name => (runs.includes(name) ? {} : { status: 'failed', exitCode: 1 }),
})
const ranIn = (events: readonly Recorded[]) =>
  ofType(events, 'command-ran').map(({ name, status }) => `${name}: ${status}`)

promise(
  'C20',
  'A check of a plan that passes before the work is sent back once; commands of the project, and one that is named again, may pass',
)
test('a check that passes before the work goes back to the planner once; one of the project may pass', async () => {
  const plays = [
    answering(checking('npm test', 'node keep.js', 'node new.js')),
    answering(checking('npm test', 'node keep.js', 'node newer.js')),
  ]
  const { outcome, events, inputs } = await plan(plays, { says: [['accept']], ...passing('npm test', 'node keep.js') })
  expect(outcome).toEqual(planned)
  expect(ranIn(events)).toEqual(['node keep.js: passed', 'node new.js: failed', 'node newer.js: failed'])
  expect(inputs[1]).toContain('`node keep.js` passes already, before anything is changed')
  expect(inputs[1]).not.toContain('`npm test` passes already')
  expect(inputs[1]).toContain('The rest of the plan can stay')
  expect(versions(events).map(({ plan }) => plan.verification.map(({ run }) => run))).toEqual([
    ['npm test', 'node keep.js', 'node newer.js'],
  ])
})

test('a planner whose checks pass before the work each time needs a person', async () => {
  const plays = ['a', 'b', 'c'].map(name => answering(checking(`node ${name}.js`)))
  const { outcome } = await plan(plays, passing('node a.js', 'node b.js', 'node c.js'))
  expect(outcome).toMatchObject({ kind: 'needs-person', reason: expect.stringContaining('`node c.js` passes already') })
})

test('a remark is kept with what was accepted', async () => {
  const { events } = await plan([answering(FIRST)], { says: [['accept', 'Mind the proxy.']] })
  expect(changeAfter(events).planning.accepted?.remark).toBe('Mind the proxy.')
})

promise(
  'C6',
  'Nothing is carried out before a person has accepted a version of the plan: a changed one is shown again, with what is different',
)
test('a plan that is changed twice is shown each time, with what is different, and only the last version is accepted', async () => {
  const third = planOf({ description: 'Count the requests in memory.' })
  const { outcome, events, inputs } = await plan([answering(FIRST), answering(SECOND), answering(third)], {
    says: [['change', 'Use Redis.'], ['change', 'No, not Redis.'], ['accept']],
  })
  expect(outcome).toEqual(planned)
  expect(statesIn(events)).toEqual([
    ...REVIEWING,
    'REVIEWING_PLAN.manual-review',
    ...CHANGED,
    ...CHANGED,
    'REVIEWING_PLAN.accepted',
  ])
  expect(inputs[1]).toContain('Version 1 of the plan, which the person has seen:')
  expect(inputs[1]).toContain('Count the requests of each client.')
  expect(inputs[1]).toMatch(/word for word\. It counts more than all above:\n\nUse Redis\./)
  expect(inputs[2]).toContain('No, not Redis.')
  expect(inputs[2]).not.toContain('Use Redis.')
  expect(bodies(events)[0]).not.toContain('What changed')
  expect(bodies(events)[2]).toMatch(
    /^> No, not Redis\.\n\n## What changed since version 2\n\n- Added line: Count the requests in memory\.\n/,
  )
  expect(versions(events).map(({ author, feedback }) => [author, feedback])).toEqual([
    ['planner', null],
    ['planner', 'Use Redis.'],
    ['planner', 'No, not Redis.'],
  ])
  expect(await file('plan/v3.md')).toContain('Count the requests in memory.')
  expect(changeAfter(events).planning.accepted).toMatchObject({ version: 3, sha256: versions(events)[2]?.sha256 })
})

/** A person who has the file of a version in their editor when it is asked, and says what they say. */
const editing = (texts: (string | ((before: string) => string))[], last: string): OnEvent => {
  const left = [...texts]
  return (event, { runner }) => {
    if (event.type !== 'decision-asked') return
    const next = left.shift()
    if (next === undefined) return void runner.decide(last, null)
    const path = join(folder, event.file ?? '')
    // At once: the clock of a played session goes on while a file is waited for, and the question is over.
    writeFileSync(path, typeof next === 'string' ? next : next(readFileSync(path, 'utf8')))
    runner.decide('edit', null)
  }
}

promise(
  'C7',
  'What is carried out is the version that was accepted, by its hash; a file that a person has edited is a version of theirs, and nonsense in it is none',
)
test('a plan that a person edits is a version of their own, and the one that was edited has its own text again', async () => {
  const { outcome, events, inputs } = await plan([answering(FIRST)], {
    onEvent: editing([text => text.replace('of each client', 'of each key')], 'accept'),
  })
  expect(outcome).toEqual(planned)
  expect(inputs).toHaveLength(1)
  expect(statesIn(events)).toEqual([
    ...REVIEWING,
    'REVIEWING_PLAN.manual-review',
    ...CHANGED,
    'REVIEWING_PLAN.accepted',
  ])
  expect(ofType(events, 'state-entered').map(({ why }) => why)).toContain('edited by the person')
  expect(versions(events)[1]).toMatchObject({
    author: 'person',
    feedback: 'edited by the person',
    plan: { description: 'Count the requests of each key.' },
  })
  expect(await file('plan/v1.md')).toContain('of each client')
  expect(await file('plan/v2.md')).toContain('of each key')
  expect(changeAfter(events).planning.accepted?.version).toBe(2)
})

test.each([['decision-made'], ['looked']])(
  'an edit that a person asks for another plan in the middle of (%s) stays in its file, and they are told',
  async moment => {
    let isSaid = false
    const edits = editing([text => text.replace('of each client', 'of each key')], 'accept')
    const { outcome, events } = await plan([answering(FIRST), answering(SECOND)], {
      onEvent(event, playing) {
        edits(event, playing)
        const isDue = event.type === moment && (event.type !== 'looked' || event.what === 'plan-edited')
        if (isSaid || !isDue) return
        isSaid = true
        queueMicrotask(() => {
          playing.runner.tell({ type: 'replan-asked', text: 'Use Redis.' })
          playing.runner.interrupt()
        })
      },
    })
    expect(outcome).toEqual(planned)
    expect(versions(events).map(({ author }) => author)).toEqual(['planner', 'planner'])
    expect(ofType(events, 'noted')).toMatchObject([
      {
        name: 'edit-not-read',
        text: 'Your edit became no version, because somebody asked for another plan meanwhile. It is kept in plan/v1.md.',
      },
    ])
    expect(await file('plan/v1.md')).toContain('of each key')
  },
)

promise('C7')
test('a plan that is edited to nonsense is no version: the person is told why, and can mend it', async () => {
  const nonsense = 'Just do it.\n'
  const { outcome, events } = await plan([answering(FIRST)], {
    onEvent: editing([nonsense, () => nonsense], 'accept'),
  })
  expect(outcome).toEqual(planned)
  expect(versions(events)).toHaveLength(1)
  expect(bodies(events)).toHaveLength(3)
  expect(bodies(events)[1]).toMatch(/^\*\*plan\/v1\.md cannot be used: /)
  // What is carried out is what the person was shown.
  expect(await file('plan/v1.md')).toContain('of each client')
  expect(changeAfter(events).planning.accepted?.version).toBe(1)
})

test('a file that a person has emptied is no version, and has the text of the version again', async () => {
  const found: string[] = []
  const leaves = (left: (before: string) => string) => (before: string) => {
    found.push(before)
    return left(before)
  }
  const { outcome, events } = await plan([answering(FIRST)], {
    onEvent: editing(['', leaves(() => ' \n\n'), leaves(before => before)], 'accept'),
  })
  expect(outcome).toEqual(planned)
  expect(versions(events)).toHaveLength(1)
  const empty = /^\*\*plan\/v1\.md was empty, so codemachine restored the text of version 1\.\*\*/
  expect(bodies(events).slice(1, 3)).toEqual([expect.stringMatching(empty), expect.stringMatching(empty)])
  expect(bodies(events)[3]).toMatch(/^\*\*You changed nothing in plan\/v1\.md\.\*\*/)
  expect(found).toEqual([expect.stringContaining('of each client'), expect.stringContaining('of each client')])
})

test('a file that nothing was changed in, and one that is gone, are no versions', async () => {
  const { events } = await plan([answering(FIRST)], { onEvent: editing([text => text], 'accept') })
  expect(versions(events)).toHaveLength(1)
  expect(bodies(events)[1]).toMatch(/^\*\*You changed nothing in plan\/v1\.md\.\*\*/)
  const gone = await plan([answering(FIRST)], {
    says: [['edit'], ['accept']],
    looks: { 'plan-edited': async () => ({ problem: 'It is gone.' }) },
  })
  expect(bodies(gone.events)[1]).toMatch(/^\*\*plan\/v1\.md cannot be used: It is gone\.\*\*/)
})

promise(
  'C8',
  'Where files of the plan were changed between plan and acceptance, that is said, and planning again is offered first',
)
test('where files of the plan were changed meanwhile, planning again is offered first', async () => {
  const looks = (values: string[]) => ({ 'plan-files': async () => ({ 'api.js': values.shift() ?? 'two' }) })
  const again = await plan([answering(FIRST), answering(SECOND)], {
    says: [['accept'], ['again'], ['accept']],
    looks: looks(['one', 'two']),
  })
  expect(again.outcome).toEqual(planned)
  expect(choices(again.events)).toEqual([
    ['accept', 'change', 'edit', 'stop'],
    ['again', 'accept', 'change', 'edit', 'stop'],
    ['accept', 'change', 'edit', 'stop'],
  ])
  expect(bodies(again.events)[1]).toMatch(/^\*\*Changed since this plan was made:\*\* `api\.js`/)
  expect(again.inputs[1]).toContain('Files that the plan names were changed after it was made: api.js.')
  expect(versions(again.events)).toHaveLength(2)
  const anyway = await plan([answering(FIRST)], {
    says: [['accept'], ['accept', 'I know.']],
    looks: looks(['one', 'two', 'two']),
  })
  expect(anyway.outcome).toEqual(planned)
  expect(changeAfter(anyway.events).planning.accepted).toMatchObject({ version: 1, remark: 'I know.' })
  const onceMore = await plan([answering(FIRST)], {
    says: [['accept'], ['accept'], ['accept']],
    looks: looks(['one', 'two', 'three', 'three']),
  })
  expect(onceMore.outcome).toEqual(planned)
  expect(bodies(onceMore.events)).toHaveLength(3)
})

test('a person who stops ends it, and is asked again when they go on', async () => {
  const stopped = await plan([answering(FIRST)], { says: [['stop']] })
  expect(stopped.outcome).toEqual({ kind: 'interrupted', by: 'stop' })
  const { outcome, inputs, events } = await plan([answering(FIRST)], { journal: stopped.events, says: [['accept']] })
  expect(outcome).toEqual(planned)
  expect(inputs).toEqual([])
  expect(statesIn(events)).toEqual(['REVIEWING_PLAN.accepted'])
})

promise('C6')
test('nobody there: it holds, and needs a person', async () => {
  const { outcome } = await plan([answering(FIRST)])
  expect(outcome).toMatchObject({
    kind: 'needs-person',
    reason: 'Nobody decided: Version 1 of the plan is ready. Carry it out?',
    hint: { do: 'decide' },
  })
})

promise(
  'C10',
  'A plan has ten versions at most; a change of it is refused then before anything is broken off, and what was accepted as done stays so',
)
test('the tenth version can be accepted, and not changed any more', async () => {
  const plays = Array.from({ length: 10 }, (_, at) => answering(planOf({ description: `Plan ${at + 1}.` })))
  const says = [...Array.from({ length: 9 }, (_, at) => ['change', `Change ${at + 1}.`] as const), ['accept'] as const]
  const { outcome, events } = await plan(plays, { says })
  expect(outcome).toEqual(planned)
  expect(versions(events)).toHaveLength(10)
  expect(choices(events).at(-1)).toEqual(['accept', 'stop'])
  expect(bodies(events).at(-1)).toContain('The plan has 10 versions, the most it may have.')
  const changed = await plan(plays, { says: [...says.slice(0, 9), ['change', 'Once more.'], ['accept']] })
  expect(changed.outcome).toEqual(planned)
  expect(versions(changed.events)).toHaveLength(10)
  expect(ofType(changed.events, 'noted')).toMatchObject([{ name: 'plan-not-changed' }])
})

test('a person who breaks in at the tenth version is told that there is no other, and asked again', async () => {
  const plays = Array.from({ length: 10 }, (_, at) => answering(planOf({ description: `Plan ${at + 1}.` })))
  let isSaid = false
  const { outcome, events } = await plan(plays, {
    says: Array.from({ length: 9 }, (_, at) => ['change', `Change ${at + 1}.`] as const),
    onEvent(event, { runner, events: before }) {
      if (event.type !== 'decision-asked' || versions(before).length < 10) return
      if (isSaid) return void runner.decide('accept', null)
      isSaid = true
      runner.tell({ type: 'replan-asked', text: 'Use Redis.' })
      runner.interrupt()
    },
  })
  expect(outcome).toEqual(planned)
  expect(versions(events)).toHaveLength(10)
  expect(ofType(events, 'noted')).toMatchObject([{ name: 'plan-not-changed' }])
  expect(changeAfter(events).planning.accepted).toMatchObject({ version: 10, by: 'person' })
})

test('with --auto the plan is accepted automatically, and that is in the journal', async () => {
  const { outcome, events } = await plan([answering(FIRST)], { change: { review: 'auto' } })
  expect(outcome).toEqual(planned)
  expect(statesIn(events)).toEqual([...REVIEWING, 'REVIEWING_PLAN.auto-accepted'])
  expect(ofType(events, 'decision-asked')).toEqual([])
  expect(changeAfter(events).planning.accepted).toMatchObject({ version: 1, by: 'auto', remark: null })
})

const prose = answering('I would just do it.')
const unusable = answering(planOf({ files: [{ path: '/etc/passwd', change: 'all' }] }))

promise(
  'C9',
  'An answer that is no plan is asked for again with what is wrong with it; after three in a row a person is needed',
)
test('an answer that is no plan is asked for again with what is wrong with it, by schema or not', async () => {
  const { outcome, events, inputs } = await plan([prose, unusable, answering(FIRST)], { says: [['accept']] })
  expect(outcome).toEqual(planned)
  expect(inputs[1]).toContain('A program reads your answer, and could not use the last one')
  expect(inputs[1]).toContain('does not contain the requested JSON object')
  expect(inputs[2]).toContain('"/etc/passwd"')
  expect(inputs[2]).not.toContain('does not contain the requested JSON object')
  // The runner would say it, too, if the next answer had the same name.
  expect(inputs.map(input => input.split('could not use the last one').length - 1)).toEqual([0, 1, 1])
  expect(statesIn(events).filter(state => state === 'GENERATING_PLAN')).toHaveLength(3)
})

test('two objects, half of one, a list and nothing at all are no plan, and are asked for again', async () => {
  const whole = JSON.stringify(FIRST)
  for (const said of [`${whole}\n${whole}`, whole.slice(0, -30), JSON.stringify([FIRST]), ' ']) {
    const { outcome, events, inputs } = await plan([answering(said), answering(FIRST)], { says: [['accept']] })
    expect(outcome, said).toEqual(planned)
    expect(inputs, said).toHaveLength(2)
    expect(inputs[1], said).toContain('A program reads your answer, and could not use the last one')
    expect(versions(events), said).toHaveLength(1)
  }
})

promise('C9')
test('after three answers in a row that are no plan a person is needed, and going on asks again', async () => {
  const ended = await plan([prose, unusable, prose])
  expect(ended.outcome).toMatchObject({
    kind: 'needs-person',
    reason: expect.stringMatching(
      /^The planner made no plan that can be used, 3 times in a row\. The last message does not contain the requested JSON object/,
    ),
  })
  expect(ended.inputs).toHaveLength(3)
  const { outcome, inputs } = await plan([unusable, answering(FIRST)], { journal: ended.events, says: [['accept']] })
  expect(outcome).toEqual(planned)
  expect(inputs).toHaveLength(2)
})

test('the change of a plan that comes to nothing three times needs a person, too, and what was to be changed is not lost', async () => {
  const ended = await plan([answering(FIRST), prose], { says: [['change', 'Use Redis.']] })
  expect(ended.outcome).toMatchObject({ kind: 'needs-person' })
  expect(ended.inputs).toHaveLength(4)
  const { outcome, inputs, events } = await plan([answering(SECOND)], { journal: ended.events, says: [['accept']] })
  expect(outcome).toEqual(planned)
  expect(inputs[0]).toContain('Use Redis.')
  expect(versions([...ended.events, ...events])[1]?.feedback).toBe('Use Redis.')
})

test('a planning round that fills its context counts as one without a plan', async () => {
  const full = endsAs({ class: 'context-full', message: 'The context is full.' })
  const { outcome, inputs } = await plan([full])
  expect(outcome).toMatchObject({
    reason: 'The planner made no plan that can be used, 3 times in a row. The context is full.',
  })
  expect(inputs).toHaveLength(3)
})

test('a session that ended with an accepted plan carries it out when it goes on', async () => {
  const ended = await plan([answering(FIRST)], { says: [['accept']] })
  expect(ofType(ended.events, 'gates-added')).toEqual([])
  const { events } = await plan([answering({ tasks: [] })], { journal: ended.events })
  expect(statesIn(events)[0]).toBe('EXECUTING_TASKS.decomposition')
  expect(ofType(events, 'gates-added')).toHaveLength(1)
})

const WITH_PLAN: StateName[] = [
  'REVIEWING_PLAN.user-review',
  'REVIEWING_PLAN.manual-review',
  'REVIEWING_PLAN.accepted',
  'REVIEWING_PLAN.rejected',
]
for (const state of WITH_PLAN) {
  test(`a person who breaks in in ${state} sees the changed plan`, async () => {
    const says = [
      ...(state === 'REVIEWING_PLAN.rejected' ? [['change', 'Shorter.'] as const] : []),
      ['accept'] as const,
    ]
    const { outcome, events, inputs } = await plan([answering(FIRST), answering(SECOND)], {
      says: state === 'REVIEWING_PLAN.accepted' ? [['accept'], ['accept']] : says,
      onEvent: breakingIn(state, 'Use Redis.'),
    })
    expect(outcome).toEqual(planned)
    expect(inputs).toHaveLength(2)
    expect(inputs[1]).toContain('Use Redis.')
    expect(inputs[1]?.includes('Shorter.')).toBe(state === 'REVIEWING_PLAN.rejected')
    expect(changeAfter(events).planning.accepted).toMatchObject({ version: 2, by: 'person' })
  })
}

promise('C12')
test('a person who breaks in before there is a plan is heard in the planning round', async () => {
  for (const state of ['GATHERING_CONTEXT', 'GENERATING_PLAN'] as const) {
    const { outcome, inputs, events } = await plan([answering(FIRST)], {
      says: [['accept']],
      onEvent: breakingIn(state, 'Use Redis.'),
    })
    expect(outcome, state).toEqual(planned)
    expect(inputs.at(-1), state).toContain('Use Redis.')
    expect(inputs.at(-1), state).toContain('A web server.')
    expect(versions(events), state).toHaveLength(1)
  }
})

test('a person who breaks in before a plan is shown, or after nobody was asked, has it changed, too', async () => {
  const early = await plan([answering(FIRST), answering(SECOND)], {
    says: [['accept']],
    onEvent: breakingIn('GENERATING_PLAN', 'Use Redis.', { on: type => type === 'looked' }),
  })
  expect(statesIn(early.events).slice(1, 4)).toEqual([
    'GENERATING_PLAN',
    'REVIEWING_PLAN.refinement',
    'REVIEWING_PLAN.user-review',
  ])
  expect(changeAfter(early.events).planning.accepted?.version).toBe(2)
  const auto = await plan([answering(FIRST), answering(SECOND)], {
    change: { review: 'auto' },
    onEvent: breakingIn('REVIEWING_PLAN.auto-accepted', 'Use Redis.'),
  })
  expect(auto.outcome).toEqual(planned)
  expect(changeAfter(auto.events).planning.accepted).toMatchObject({ version: 2, by: 'auto' })
})

test('a planning round in which a person breaks in is begun anew with their words', async () => {
  const slow: Play = async ({ clock, interrupted, run }) => {
    await clock.wait(60_000, interrupted)
    return await answering(SECOND)({ run } as Parameters<Play>[0])
  }
  const rounds: OnEvent = (event, { runner }) => {
    if (event.type !== 'round-started' || event.round !== 2) return
    runner.tell({ type: 'replan-asked', text: 'And be short.' })
    runner.interrupt()
  }
  const { outcome, inputs, events } = await plan([answering(FIRST), slow, answering(SECOND)], {
    says: [['change', 'Use Redis.'], ['accept']],
    onEvent: rounds,
  })
  expect(outcome).toEqual(planned)
  expect(inputs).toHaveLength(3)
  expect(inputs[2]).toMatch(/Use Redis\.\n\nAnd be short\./)
  expect(versions(events)[1]?.feedback).toBe('Use Redis.\n\nAnd be short.')
  expect(statesIn(events).filter(state => state === 'REVIEWING_PLAN.refinement')).toHaveLength(2)
})

test('a change of the plan with --go is carried out without being shown, and nothing in it counts as proof', async () => {
  const { outcome, events } = await plan([answering(FIRST), answering(SECOND)], {
    onEvent: breakingIn('REVIEWING_PLAN.manual-review', 'Use Redis.', { go: true }),
  })
  expect(outcome).toEqual(planned)
  expect(statesIn(events).slice(-3)).toEqual([
    'REVIEWING_PLAN.refinement',
    'REVIEWING_PLAN.user-review',
    'REVIEWING_PLAN.auto-accepted',
  ])
  // What comes after it is shown again.
  expect(changeAfter(events).planning).toMatchObject({ accepted: { version: 2, by: 'go' }, isGo: false })
})

test('what a person wants who breaks in twice before it is taken up is all told', async () => {
  let isSaid = false
  const { outcome, inputs } = await plan([answering(FIRST), answering(SECOND)], {
    says: [['accept']],
    onEvent(event, { runner, events }) {
      if (isSaid || event.type !== 'state-entered' || statesIn(events).at(-1) !== 'REVIEWING_PLAN.user-review') return
      isSaid = true
      queueMicrotask(() => {
        runner.tell({ type: 'replan-asked', text: 'Use Redis.' })
        runner.tell({ type: 'replan-asked', text: 'And be short.' })
      })
    },
  })
  expect(outcome).toEqual(planned)
  expect(inputs[1]).toContain('Use Redis.\n\nAnd be short.')
})

test('a round that could not be tried, for the network was away, is no answer that cannot be used', async () => {
  const away = endsAs({ class: 'network', message: 'The network is away.' })
  const { outcome, inputs, events } = await plan([away, away, away, answering(FIRST)], { says: [['accept']] })
  expect(outcome).toEqual(planned)
  expect(inputs.at(-1)).not.toContain('could not use the last one')
  expect(statesIn(events).filter(state => state === 'GENERATING_PLAN')).toHaveLength(1)
})

test('a project without a test or build command is told before anything is carried out', async () => {
  const { events } = await plan([answering(planOf({ verification: [] }))], {
    says: [['accept']],
    facts: { commands: [] },
  })
  expect(bodies(events)[0]).toContain('No test or build command was found in this project.')
  expect(bodies(events)[0]).toContain('the session will end *not verified*')
})

test('what a person says while it is planned reaches the planner', async () => {
  const { inputs } = await plan([answering(FIRST)], {
    says: [['accept']],
    onBegin: ({ runner }) => void runner.steer('Keep it small.'),
  })
  expect(inputs[0]).toContain('Keep it small.')
})

promise(
  'C13',
  'A change that is killed while it plans comes to the same plan, with no planning round more than it takes',
)
test('killed after any event, and gone on with, it comes to the same plan with no more planning rounds than were needed', async () => {
  const says = [
    ['change', 'Use Redis.'],
    ['accept', 'Mind the proxy.'],
  ] as const
  const plays = [answering(FIRST), answering(SECOND)]
  const begin = async () => {
    await rm(folder, { recursive: true, force: true })
    folder = await mkdtemp(join(tmpdir(), 'codemachine-change-'))
  }
  await begin()
  const whole = await plan(plays, { says })
  const last = changeAfter(whole.events)
  for (let kept = 1; kept < whole.events.length; kept++) {
    await begin()
    const journal: Recorded[] = []
    const killed = plan(plays, {
      says,
      append: event => {
        if (journal.length === kept) throw new Error('killed')
        journal.push(event)
      },
    })
    await expect(killed).rejects.toThrow('killed')
    const given = ofType(journal, 'answer-given').length
    const decided = ofType(journal, 'decision-made').length
    const resumed = await plan(plays.slice(given), { journal, says: says.slice(decided) })
    const after = `killed after ${journal.at(-1)?.type} (${kept})`
    expect(resumed.outcome, after).toEqual(planned)
    expect(ofType(resumed.events, 'answer-given').length + given, after).toBe(2)
    const { planning, state } = changeAfter([...journal, ...resumed.events])
    expect(state, after).toBe(last.state)
    expect(planning, after).toEqual(last.planning)
    expect(await file('plan/v2.md'), after).toContain('Redis')
    expect(await file('context.md'), after).toContain('A web server.')
  }
})

promise('C11', 'The commands of a plan count as proof only if a person has accepted that version')
test('the commands of an accepted plan become gates, and those of the version before are none any more', async () => {
  const other = planOf({ verification: [{ run: 'node --test api', why: 'its tests pass' }] })
  const { events } = await plan([answering(FIRST), answering(other), prose], {
    change: { planOnly: false },
    says: [['accept'], ['accept']],
    ...passing(),
    onEvent: breakingIn('EXECUTING_TASKS.decomposition', 'Only the tests of the API.'),
  })
  const added = ofType(events, 'gates-added')
  expect(added.map(({ gates }) => gates.map(({ run, required }) => [run, required]))).toEqual([
    [['node --test', true]],
    [['node --test api', true]],
  ])
  expect(added[0]?.why).toBe('the person accepted them with version 1 of the plan')
  expect(sessionAfter(events).gates.map(({ run }) => run)).toEqual(['node --test api'])
})

test('a command that a plan names twice is one gate', async () => {
  const twice = planOf({
    verification: [
      { run: 'node --test', why: 'its tests pass' },
      { run: 'node --test', why: 'and those of the rest' },
    ],
  })
  const { events } = await plan([answering(twice), prose], { change: { planOnly: false }, says: [['accept']] })
  expect(ofType(events, 'gates-added').map(({ gates }) => gates.map(({ run }) => run))).toEqual([['node --test']])
})

test('blanks are no remark', async () => {
  const { events } = await plan([answering(FIRST)], { says: [['accept', ' \n']] })
  expect(changeAfter(events).planning.accepted).toMatchObject({ remark: null })
})

promise('C11')
test('what nobody has seen proves nothing: it is no gate, and takes those of an earlier version away', async () => {
  const auto = await plan([answering(FIRST), prose], { change: { planOnly: false, review: 'auto' } })
  expect(ofType(auto.events, 'gates-added')).toEqual([])
  const { events } = await plan([answering(FIRST), answering(SECOND), prose], {
    change: { planOnly: false },
    says: [['accept']],
    onEvent: breakingIn('EXECUTING_TASKS.decomposition', 'Use Redis.', { go: true }),
  })
  expect(ofType(events, 'gates-added').map(({ gates }) => gates.length)).toEqual([1, 0])
  expect(sessionAfter(events).gates).toEqual([])
})

test('a plan that is too long for the question says where all of it lies, and still what counts as proof and what is different', async () => {
  const long = (word: string) => planOf({ description: Array.from({ length: 2_000 }, () => word).join('\n') })
  const { events } = await plan([answering(long('ever')), answering(long('never'))], {
    says: [['change', 'No.'], ['accept']],
  })
  const body = bodies(events)[1] ?? ''
  expect(body).toContain(`The whole plan is in \`${SESSION_FOLDER}/plan/v2.md\`.`)
  expect(body).toContain('## What will count as proof')
  expect(body).toContain('- `node --test`')
  expect(body).toMatch(/^> No\.\n\n## What changed since version 1\n\n- Added line: never\n- Removed line: ever\n/)
  expect(body.length).toBeLessThan(16_000)
})
