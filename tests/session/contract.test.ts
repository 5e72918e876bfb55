import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Recorded } from '../../src/core/events/events.ts'
import { type ProveTerms, sentencesOf } from '../../src/core/rules/contract.ts'
import { fold } from '../../src/core/state/fold.ts'
import { emptyState } from '../../src/core/state/state.ts'
import { OWN_TEMPLATES } from '../../src/modes/registry.ts'
import { reportContract } from '../../src/tell/report/contract.ts'
import { wordsForContract } from '../../src/tell/words/contract.ts'
import {
  CLAIMED,
  ofType,
  type Play,
  type PlayOptions,
  playSession,
  type Ran,
  UNCLAIMED,
} from '../support/played-session.ts'
import { promise } from '../support/promise.ts'
import { worked } from '../support/session-events.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'codemachine-test-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const TERMS: ProveTerms = { author: null, control: null, holdOut: 0, controls: 1, required: false, only: false }
const GOAL = 'Make a. Keep b. Make c nice.'

const check = (run: string) => ({ run, seconds: 5, needs: null, files: [{ path: 't.sh', text: `secret of ${run}` }] })
const must = (quote: string) => ({ quote, kind: 'must', reason: null, checks: [check(`check ${quote}`)] })
const KEEP = { quote: 'Keep b.', kind: 'keep', reason: null, checks: [check('check b')] }
const TASTE = { quote: 'Make c nice.', kind: 'not-checkable', reason: 'It is taste.', checks: [] }
const CONTRACT = { sentences: [must('Make a.'), KEEP, TASTE] }

/** What is asked for, by the shape of the answer. */
interface Answers {
  contract?: (input: string, asked: number) => unknown
  controls?: (input: string) => unknown
  second?: (input: string) => unknown
}

const EDIT = 'contract.toml'
const VERSIONS = { versions: [{ summary: 'Wrong.', edits: [{ path: 'a', find: null, text: 'wrong' }] }] }

/** A session whose rounds make `a` in the second one, and claim in the third. What is in its work directory outlives a kill. */
class Night {
  tree = 'start'
  rounds = 0
  asked = 0
  /** What lay there after each event; `edit`: what waits of the person's. */
  readonly moments: { tree: string; rounds: number; edit: string | null }[] = []
  readonly #answers: Answers

  constructor(answers: Answers = {}) {
    this.#answers = answers
  }

  readonly play: Play = ({ run }) => {
    const { outputSchema, input } = run
    const shape = outputSchema === undefined ? '' : JSON.stringify(outputSchema)
    const { contract, controls, second } = this.#answers
    const answer = shape.includes('"sentences"')
      ? (contract?.(input, ++this.asked) ?? CONTRACT)
      : shape.includes('"versions"')
        ? (controls?.(input) ?? VERSIONS)
        : shape === ''
          ? null
          : (second?.(input) ?? { checks: [check('one more')] })
    if (answer === null) {
      this.rounds++
      if (this.rounds === 2) this.tree = 'made'
    } else {
      const text = typeof answer === 'string' ? answer : JSON.stringify(answer)
      const item = { kind: 'agent-message', id: 'm', text, phase: 'final-answer' } as const
      run.onEvent({ type: 'item-completed', round: run.round, item })
    }
    return worked
  }

  /** Red before the work: that of `a` alone. */
  readonly check: NonNullable<PlayOptions['check']> = (name, tree) =>
    name === 'S1-1' && tree === 'start' ? { status: 'failed', exitCode: 1, output: 'a is missing' } : {}

  play1(terms: Partial<ProveTerms> = {}, { onEvent, ...options }: Partial<PlayOptions> = {}): Promise<Ran> {
    const edit = join(options.folder ?? folder, EDIT)
    return playSession([this.play], {
      folder,
      limits: { rounds: 20 },
      begun: { goal: GOAL, prove: { ...TERMS, ...terms } },
      tree: () => this.tree,
      memory: () => (this.rounds >= 3 ? CLAIMED : UNCLAIMED),
      check: this.check,
      canAsk: false,
      ...options,
      onEvent: (event, playing) => {
        onEvent?.(event, playing)
        const text = existsSync(edit) ? readFileSync(edit, 'utf8') : null
        this.moments[playing.events.length - 1] = { tree: this.tree, rounds: this.rounds, edit: text }
      },
    })
  }
}

const shown = (events: readonly Recorded[]) =>
  events.flatMap(event => {
    if (event.type === 'check-ended') return [`${event.when} ${event.sentence}-${event.check} ${event.status}`]
    if (event.type === 'contract-turn-started') return [`${event.role} ${event.sentence ?? 'all'}`]
    if (event.type === 'contract-drafted' && event.by === 'person') return ['drafted person']
    if (event.type === 'decision-made' && event.id === 'contract-behind') return [`behind ${event.choice}`]
    if (event.type === 'control-tried') return [`control ${event.sentence} ${event.result}`]
    return ['contract-frozen', 'contract-left', 'contract-dropped', 'done-refused', 'done-accepted'].includes(
      event.type,
    )
      ? [event.type]
      : []
  })

promise('D77', 'With `--prove`, done is *proved* only if every sentence holds and its checks catch wrong versions')
test('what was asked for is written down before the work, red first, and proved once wrong versions are caught', async () => {
  const night = new Night()
  const { outcome, events, wholeInputs } = await night.play1()
  expect(outcome).toEqual({ kind: 'done', verified: true, proof: 'proved' })
  expect(shown(events)).toEqual([
    'author all',
    'before S1-1 failed',
    'before S2-1 passed',
    'contract-frozen',
    'after-round S1-1 passed',
    'after-round S2-1 passed',
    'control S1',
    'control S1 caught',
    'control S2',
    'control S2 caught',
    'done-accepted',
  ])
  expect(wholeInputs.find(input => input.includes('checks prove the goal sentence by sentence'))).toContain(
    '- S1 (must, does not hold yet): "Make a."',
  )
})

/** What counts at the end, and whether it is known to be behind. */
function endOf(events: readonly Recorded[]) {
  const { contract } = events.reduce((state, event) => fold(state, event, OWN_TEMPLATES), emptyState('s'))
  return [
    contract?.frozen?.sentences.map(({ checks }) => checks.map(({ run }) => run)),
    contract?.behind?.isKept ?? null,
  ]
}

/** A person who changes the plan in round 1, and decides so about the contract; null: nobody is there to decide. */
const replanning = (choice: string | null) => (): Partial<PlayOptions> => {
  let isAsked = false
  return {
    canAsk: choice !== null,
    onEvent: (event, { runner }) => {
      if (event.type === 'round-started' && event.round === 1 && !isAsked) {
        isAsked = true
        runner.tell({ type: 'replan-asked', text: 'Make d, too.', goesOn: true })
      }
      if (event.type === 'decision-asked')
        queueMicrotask(() => runner.decide(event.id === 'contract-behind' ? (choice ?? '') : 'accept', null))
    },
  }
}

const EDITED = '[[sentences]]\nquote = "Make a."\nkind = "must"\n[[sentences.checks]]\nrun = "mine"\nseconds = 9\n'

/** A person who edits the contract once a round has ended. */
const editing = (texts: Readonly<Record<number, string>>) => (): Partial<PlayOptions> => {
  const own = mkdtempSync(join(folder, 'edit-'))
  return {
    folder: own,
    onEvent: event => {
      const text = event.type === 'round-ended' ? texts[event.round] : undefined
      if (text !== undefined) writeFileSync(join(own, EDIT), text)
    },
  }
}

promise('D78', 'Killed at any event of its contract, a session goes on to the same end')
test.each([
  ['a contract', () => ({}), []],
  [
    'a wrong version that no check notices',
    () => ({
      control: (_: string, checks: number) => (checks > 1 ? {} : ({ result: 'not-caught', check: null } as const)),
    }),
    ['author S1', 'second S1-2 passed', 'contract-frozen'],
  ],
  ['a plan that is changed, and a contract that is kept', replanning(null), ['behind accept']],
  ['one that is written again for that', replanning('renew'), ['behind renew']],
  ['one that the person edits', editing({ 2: EDITED }), ['drafted person']],
])(
  'killed after any event of it, a session with %s comes to the same end',
  async (_, optionsOf: () => Partial<PlayOptions>, has) => {
    const whole = new Night()
    const { events } = await whole.play1({}, optionsOf())
    expect(shown(events)).toEqual(expect.arrayContaining(has))
    const end = endOf(events)
    for (const at of events.keys()) {
      if (events[at]?.type === 'session-ended') continue
      const night = new Night()
      const { tree = 'start', rounds = 0, edit = null } = whole.moments[at] ?? {}
      Object.assign(night, { tree, rounds })
      const options = optionsOf()
      if (edit !== null) writeFileSync(join(options.folder ?? folder, EDIT), edit)
      const ran = await night.play1({}, { ...options, journal: events.slice(0, at + 1) })
      expect([at, events[at]?.type, ran.outcome, endOf([...events.slice(0, at + 1), ...ran.events])]).toEqual([
        at,
        events[at]?.type,
        { kind: 'done', verified: true, proof: 'proved' },
        end,
      ])
    }
  },
)

describe('an author', () => {
  test('that answers rubbish three times is given up, and the session goes on; one that has to be proved needs a person', async () => {
    const rubbish = { contract: () => 'no idea' }
    const { outcome, events } = await new Night(rubbish).play1()
    expect(outcome).toEqual({ kind: 'done', verified: false, proof: 'none' })
    expect(ofType(events, 'contract-turn-ended')).toHaveLength(3)
    const { outcome: required, events: none } = await new Night(rubbish).play1({ required: true })
    expect(required).toMatchObject({ kind: 'needs-person' })
    expect(ofType(none, 'round-started')).toEqual([])
  })

  test('that quotes what is not there is told so, and asked again', async () => {
    const inputs: string[] = []
    const night = new Night({
      contract: (input, asked) => {
        inputs.push(input)
        return asked === 1 ? { sentences: [must('Make z.')] } : CONTRACT
      },
    })
    const { outcome } = await night.play1()
    expect(outcome).toMatchObject({ proof: 'proved' })
    expect(inputs[1]).toContain('S1: the goal does not contain this quote: "Make z."')
  })

  promise('D79', 'A check that passes before the work, or cannot run, is sent back twice, and then said')
  test('whose check passes before the work is sent back with what it printed, twice at most, and then it is said', async () => {
    const inputs: string[] = []
    const night = new Night({ contract: input => void inputs.push(input) })
    const { events } = await night.play1({}, { check: () => ({}) })
    expect(inputs).toHaveLength(3)
    expect(inputs[1]).toContain('S1: its checks already pass before any work.')
    expect(ofType(events, 'contract-frozen')).toMatchObject([{ version: 3 }])
  })

  promise('D86', 'A *must* whose checks pass before the work is *weak*, for they pass on the first wrong version')
  test('whose check passes before the work leaves its sentence weak: no wrong version is asked for, and it is not proved', async () => {
    const { outcome, events } = await new Night().play1({}, { check: () => ({}) })
    expect(outcome).toEqual({ kind: 'done', verified: false, proof: 'none' })
    expect(shown(events).filter(each => each.includes('control'))).toEqual(['control S2', 'control S2 caught'])
  })

  const BROKEN = { status: 'failed', exitCode: 127, cannotRun: true, output: 'pytest: not found' } as const

  test('whose check never can run does not stand in the way of done, and nothing of it counts as proved', async () => {
    const night = new Night()
    const { outcome } = await night.play1({}, { check: name => (name === 'S1-1' ? BROKEN : {}) })
    expect(outcome).toEqual({ kind: 'done', verified: false, proof: 'none' })
  })

  test.each([
    ['fail for a reason of their own', BROKEN],
    [
      'find nothing that runs them',
      { status: 'not-started', exitCode: null, cannotRun: true, problem: 'No shell.' } as const,
    ],
  ])(
    'whose checks all %s is told so twice: its sentences are unusable, and what has to be proved needs a person',
    async (_, came) => {
      const inputs: string[] = []
      const night = new Night({ contract: input => void inputs.push(input) })
      const { outcome, events } = await night.play1({}, { check: () => came })
      expect(inputs).toHaveLength(3)
      expect(inputs[1]).toMatch(/- S1: check 1 cannot run[^-]*- S2: check 1 cannot run/)
      expect(outcome).toEqual({ kind: 'done', verified: false, proof: 'none' })
      expect(ofType(events, 'controls-written')).toEqual([])
      const { contract } = events.reduce((state, event) => fold(state, event, OWN_TEMPLATES), emptyState('s'))
      expect(sentencesOf(contract).map(({ state }) => state)).toEqual(['unusable', 'unusable', 'not-checkable'])
      const { outcome: required } = await new Night().play1({ required: true }, { check: () => came })
      expect(required).toMatchObject({ kind: 'needs-person', reason: expect.stringContaining('0 of 2') })
    },
  )
})

describe('a claim', () => {
  test('with a sentence that does not hold is refused, with the check and what it printed', async () => {
    const night = new Night()
    let left = 2
    const isMade = (tree: string) => tree === 'made' && left-- <= 0
    const { events, inputs } = await night.play1(
      {},
      {
        check: (name, tree) =>
          name !== 'S1-1' || isMade(tree) ? {} : { status: 'failed', exitCode: 1, output: 'a is missing' },
        memory: () => (night.rounds >= 2 ? CLAIMED : UNCLAIMED),
      },
    )
    expect(ofType(events, 'done-refused').map(({ reason }) => reason)).toContain('contract-failed')
    const told = inputs.find(input => input.includes('S1 does not hold yet: "Make a."'))
    expect(told).toContain('a is missing')
  })

  promise(
    'D92',
    'A check that fails at a claim runs again; one that then passes three times on the same files is *flaky*',
  )
  test('whose check failed by chance is refused once: the check runs again on the same files, and is said to be flaky', async () => {
    const night = new Night()
    let claims = 0
    const { outcome, events } = await night.play1(
      {},
      {
        check: (name, tree, failedHere) => {
          const slow = { durationMs: 20_000 }
          if (failedHere !== null) return { ...slow, status: 'flaky', exitCode: failedHere.exitCode }
          const fails = name === 'S1-1' && (tree === 'start' || claims++ === 0)
          return fails ? { ...slow, status: 'failed', exitCode: 7 } : slow
        },
        memory: () => (night.rounds >= 2 ? CLAIMED : UNCLAIMED),
      },
    )
    expect(outcome).toMatchObject({ proof: 'proved' })
    expect(shown(events).filter(each => /claim S1|done/.test(each))).toEqual([
      'done-refused',
      'claim S1-1 failed',
      'done-refused',
      'claim S1-1 flaky',
      'done-accepted',
    ])
    const state = events.reduce((state, event) => fold(state, event, OWN_TEMPLATES), emptyState('s'))
    expect(reportContract(state.contract, true)?.sentences[0]?.checks).toMatchObject([{ now: 'flaky', isFlaky: true }])
  })

  promise('D80', 'Of a held-out sentence the rounds learn only that it does not hold yet')
  test('of a held-out sentence is refused with nothing of its check', async () => {
    const night = new Night()
    const { events, wholeInputs } = await night.play1(
      { holdOut: 1 },
      {
        limits: { rounds: 5 },
        check: name => (name === 'S1-1' ? { status: 'failed', exitCode: 1, output: 'a is missing' } : {}),
      },
    )
    expect(ofType(events, 'contract-frozen')).toMatchObject([{ heldOut: ['S1', 'S2'], problem: null }])
    const told = wholeInputs.filter(input => input.includes('checks prove the goal sentence by sentence')).join('\n')
    expect(told).toContain('S1 does not hold yet: "Make a."')
    expect(told).toContain('The checks of S1, S2 are not shown.')
    expect(told).not.toContain('a is missing')
    expect(told).not.toContain('check Make a.')
  })

  test('holds nothing out where the sandbox keeps nobody from reading', async () => {
    const { events } = await new Night().play1({ holdOut: 0.3 }, { hidesFiles: false })
    expect(ofType(events, 'contract-frozen')).toMatchObject([
      { heldOut: [], problem: expect.stringContaining('workspace-write') },
    ])
  })

  test('that is proved needs it, where that is required: a weak sentence needs a person', async () => {
    const control = () => ({ result: 'not-caught', check: null }) as const
    const { outcome } = await new Night().play1({ required: true }, { control })
    expect(outcome).toMatchObject({
      kind: 'needs-person',
      reason: expect.stringContaining('0 of 2 sentences are proved'),
    })
  })
})

describe('a wrong version that no check notices', () => {
  promise('D81', 'A wrong version that no check notices is shown to the author once; else its sentence is *weak*')
  test('has the author write one more check, and its sentence is proved once that catches it', async () => {
    let tries = 0
    const control = (name: string) =>
      name === 'S1-1' && ++tries === 1 ? ({ result: 'not-caught', check: null, diff: '+wrong' } as const) : {}
    const inputs: string[] = []
    const night = new Night({ second: input => void inputs.push(input) })
    const { outcome, events } = await night.play1({}, { control })
    expect(outcome).toMatchObject({ proof: 'proved' })
    expect(inputs[0]).toContain('+wrong')
    expect(shown(events).slice(-9)).toEqual([
      'control S1',
      'control S1 not-caught',
      'author S1',
      'second S1-2 passed',
      'control S1 caught',
      'contract-frozen',
      'control S2',
      'control S2 caught',
      'done-accepted',
    ])
  })

  test.each([
    ['does not catch it either', {}, () => ({ result: 'not-caught', check: null }) as const],
    ['fails on what was claimed', { 'S1-2': 'failed' }, undefined],
  ])('leaves its sentence weak where the new check %s', async (_, second, always) => {
    let tries = 0
    const control = (name: string) =>
      name !== 'S1-1' ? {} : (always?.() ?? (++tries === 1 ? ({ result: 'not-caught', check: null } as const) : {}))
    const night = new Night()
    const failing = new Set(Object.keys(second))
    const { outcome, events } = await night.play1(
      {},
      {
        control,
        check: (name, tree) => (failing.has(name) ? { status: 'failed', exitCode: 1 } : night.check(name, tree, null)),
      },
    )
    expect(outcome).toEqual({ kind: 'done', verified: false, proof: 'none' })
    expect(ofType(events, 'contract-dropped')).toHaveLength(1)
  })

  test('that does not count is told to who wrote it, who writes another one', async () => {
    let tries = 0
    const control = (name: string) =>
      name === 'S1-1' && ++tries === 1
        ? ({ result: 'broken', check: null, problem: 'One of its files does not parse.' } as const)
        : {}
    const inputs: string[] = []
    const { outcome, events } = await new Night({ controls: input => void inputs.push(input) }).play1({}, { control })
    expect(outcome).toMatchObject({ proof: 'proved' })
    expect(inputs[1]).toContain('- Wrong.: One of its files does not parse.')
    expect(shown(events).slice(-7)).toEqual([
      'control S1',
      'control S1 broken',
      'control S1',
      'control S1 caught',
      'control S2',
      'control S2 caught',
      'done-accepted',
    ])
  })

  test('that is the same program, twice, does not count, and a sentence without any holds without being proved', async () => {
    const control = () => ({ result: 'same', check: null, diff: '' }) as const
    const { outcome, events: both } = await new Night().play1({}, { control })
    expect(outcome).toMatchObject({ proof: 'none' })
    expect(ofType(both, 'controls-written')).toHaveLength(4)
    const { outcome: none, events } = await new Night().play1({ controls: 0 })
    expect(none).toMatchObject({ proof: 'none' })
    expect(ofType(events, 'controls-written')).toEqual([])
  })
})

test('a sentence that held and does not any more is told to the next round', async () => {
  const night = new Night()
  const { inputs } = await night.play1(
    {},
    {
      limits: { rounds: 3 },
      memory: () => UNCLAIMED,
      check: (name, tree) =>
        name === 'S2-1' && tree === 'made' ? { status: 'failed', exitCode: 1 } : night.check(name, tree, null),
    },
  )
  expect(inputs.at(-1)).toContain('The last round broke this requirement. S2 does not hold yet: "Keep b."')
})

describe('the person', () => {
  test('has it changed with words, which the author is told, and accepts what comes of that', async () => {
    const inputs: string[] = []
    let decisions = 0
    const night = new Night({ contract: input => void inputs.push(input) })
    const { events } = await night.play1(
      {},
      {
        canAsk: true,
        onEvent: (event, { runner }) => {
          if (event.type !== 'decision-asked') return
          queueMicrotask(() =>
            decisions++ === 0 ? runner.decide('change', 'Check c, too.') : runner.decide('accept', null),
          )
        },
      },
    )
    expect(inputs[1]).toContain('The person wants it changed')
    expect(inputs[1]).toContain('Check c, too.')
    expect(ofType(events, 'contract-frozen')).toMatchObject([{ version: 2, by: 'person' }])
  })

  test('goes on without it, and the session is then proved by its gates alone', async () => {
    const { events, outcome } = await new Night().play1(
      {},
      {
        canAsk: true,
        onEvent: (event, { runner }) => {
          if (event.type === 'decision-asked') queueMicrotask(() => runner.decide('without', null))
        },
      },
    )
    expect(ofType(events, 'contract-left')).toMatchObject([{ by: 'person' }])
    expect(outcome).toMatchObject({ proof: 'none' })
  })

  promise('D84', 'From the first round on, only you change the contract')
  test('edits it while the session works: it counts from the next step on, and a mistake in it is said with its line', async () => {
    const night = new Night()
    const mistaken = '[[sentences]]\nquote = "Make z."\nkind = "keep"\n'
    const { outcome, events } = await night.play1({}, editing({ 1: mistaken, 2: EDITED })())
    expect(outcome).toMatchObject({ proof: 'proved' })
    expect(ofType(events, 'warning').map(({ message }) => message)).toEqual([
      expect.stringMatching(/contract\.toml:1: S1: the goal does not contain this quote: "Make z\."\.$/),
    ])
    expect(ofType(events, 'contract-frozen')).toMatchObject([{ version: 1 }, { version: 2, by: 'person' }])
    expect(ofType(events, 'contract-drafted').at(-1)?.sentences).toMatchObject([{ checks: [{ run: 'mine' }] }])
  })

  promise('D87', 'Who changes what they asked for decides whether the contract is kept, or written again')
  test.each([
    ['keeps it', null],
    ['has the author write a new version', 'renew'],
  ])('changes the plan, and %s', async (_, choice) => {
    const inputs: string[] = []
    const renewed = { sentences: [must('Make a.'), must('Make d, too.'), KEEP, TASTE] }
    const night = new Night({
      contract: (input, asked) => {
        inputs.push(input)
        return asked === 1 ? CONTRACT : renewed
      },
    })
    const { outcome, events } = await night.play1({}, replanning(choice)())
    expect(outcome).toMatchObject({ proof: 'proved' })
    const frozen = ofType(events, 'contract-frozen').map(({ version }) => version)
    const decided = ofType(events, 'decision-made').filter(({ id }) => id === 'contract-behind')
    const [ended] = ofType(events, 'session-ended')
    expect(ended).toBeDefined()
    if (choice === null) {
      expect([decided, frozen]).toEqual([[expect.objectContaining({ choice: 'accept', by: 'default' })], [1]])
    } else {
      expect(frozen).toEqual([1, 2])
      expect(inputs[1]).toContain('What the person changed of it since')
      expect(ofType(events, 'contract-drafted').at(-1)?.uncovered).toEqual([])
    }
    const state = events.reduce((state, event) => fold(state, event, OWN_TEMPLATES), emptyState('s'))
    expect(wordsForContract(state.contract)?.includes('does not contain your later changes')).toBe(choice === null)
  })

  test('asks for a new version of which nothing comes: the one that counts goes on', async () => {
    const night = new Night({ contract: (_, asked) => (asked === 1 ? CONTRACT : 'no idea') })
    const { outcome, events } = await night.play1({}, replanning('renew')())
    expect(outcome).toMatchObject({ proof: 'proved' })
    expect(ofType(events, 'contract-dropped')).toMatchObject([{ version: 2 }])
  })

  test('wants the contract alone: the session ends with it, and resume does the work', async () => {
    const night = new Night()
    const { outcome, events } = await night.play1({ only: true })
    expect(outcome).toEqual({ kind: 'planned', what: 'contract' })
    expect(ofType(events, 'round-started')).toEqual([])
    const { outcome: after } = await night.play1({}, { journal: events })
    expect(after).toMatchObject({ kind: 'done', proof: 'proved' })
  })
})
