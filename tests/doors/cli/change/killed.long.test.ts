import type { KillPoint } from '../../../support/kill-points.ts'
import { promise } from '../../../support/promise.ts'
import { sliceOf } from '../../../support/random.ts'
import { describe, test } from '../../../support/side-by-side.ts'
import { inState, STATES, surviveChange } from './survive.ts'

type Eventful = Extract<KillPoint, { event: string }>

const at = (event: Eventful['event'], when: Eventful['when'], n = 1): KillPoint => ({
  victim: 'codemachine',
  event,
  when,
  n,
})

const WHENS = ['before', 'torn', 'after'] as const
const thrice = (event: Eventful['event']) => WHENS.map(when => at(event, when))
const through = (states: readonly string[]) => states.flatMap(state => WHENS.map(when => inState(state, when)))

/** One session each, killed at all of these points, one after the other: a change is many rounds. */
const CHAINS: readonly (readonly [string, readonly KillPoint[]])[] = [
  ['in each state of its planning', through(STATES.slice(0, 4))],
  ['in each state of its execution up to the first result', through(STATES.slice(4, 8))],
  ['in each state of its execution after that', through(STATES.slice(8, 11))],
  ['in each state of its end', through(STATES.slice(11))],
  [
    'at each kind of event',
    (
      ['step-started', 'looked', 'kept', 'round-started', 'answer-given', 'round-ended', 'command-ran'] as const
    ).flatMap(thrice),
  ],
  [
    'in its commands, and at its claim',
    [
      { victim: 'codex', event: 'item-completed', item: 'command', when: 'after', n: 1 },
      { victim: 'both', event: 'item-completed', item: 'command', when: 'after', n: 2 },
      ...thrice('done-nominated'),
      ...thrice('done-accepted'),
      at('session-ended', 'before'),
      at('session-ended', 'after'),
    ],
  ],
]

/** A session that is begun some twenty times takes most of a minute on an idle machine. */
const CHAIN_MS = 600_000

promise('C66', 'Killed in any of its states and resumed, a change comes to the same end')
describe('a change that is killed, and resumed, comes to the same end', () => {
  test.each(sliceOf(CHAINS))(
    '%s',
    async (_, points) => {
      await surviveChange(points)
    },
    CHAIN_MS,
  )
})

const REVIEW = ['user-review', 'manual-review'].map(state => `REVIEWING_PLAN.${state}`)

promise('C66')
describe('a change whose plan a person accepts, and that is killed, comes to the same end', () => {
  test(
    'where it is killed while the plan is reviewed',
    async () => {
      await surviveChange([...through(REVIEW), ...thrice('decision-asked')], { manual: true })
    },
    CHAIN_MS,
  )

  test(
    'where it is killed when the plan is accepted',
    async () => {
      const accepted = through(['REVIEWING_PLAN.accepted'])
      await surviveChange([...thrice('decision-made'), ...accepted, ...thrice('gates-added')], { manual: true })
    },
    CHAIN_MS,
  )
})
