import type { Key } from '../tests/support/emulator-keys.ts'
import type { Awaited } from '../tests/support/emulator-wait.ts'

/** What a person does, and waits to see, before the picture is taken. */
export type Step = { until: Awaited } | { press: Key } | { type: string }

/** One picture of a terminal, taken of a real run. */
export interface Shot {
  /** Name of the file, before `-light.svg` and `-dark.svg`. */
  name: string
  /** What it shows, for those who cannot see it. */
  label: string
  args: readonly string[]
  columns: number
  rows: number
  /** A demo runs elsewhere, and this is typed in its project. */
  besideDemo?: true
  steps: readonly Step[]
  /** Only the rows from the last one with the first of these to the one with the other; left out: all. */
  part?: readonly [from: RegExp, to: RegExp]
}

const WIDE = { columns: 100, rows: 30 }
const DEMO = { args: ['demo'], ...WIDE }

/** Once the second round has tested what it has built. */
const AT_WORK: Step = { until: /\$ mkdir -p build/ }

export const SHOTS: readonly Shot[] = [
  {
    name: 'start',
    label: 'The start screen of codemachine: logo, project, login, and a line to type a goal into',
    args: [],
    ...WIDE,
    steps: [{ until: /Login +[^… ]/ }],
  },
  {
    name: 'morning',
    label: 'The morning: the claims that were refused, the gate that passed, done and verified, and the report',
    args: ['demo', '--fast'],
    columns: 110,
    rows: 70,
    steps: [...[2, 3, 4, 5].map(round => ({ until: new RegExp(`round ${round} of`) })), { until: /Now yours/ }],
    part: [/round 5 ended/, /^report /],
  },
  { name: 'run', label: 'codemachine at work: what the agent says, does and changes', ...DEMO, steps: [AT_WORK] },
  {
    name: 'build',
    label: 'A build at work: the task, its phase, and agents side by side',
    args: ['demo', '--template', 'build'],
    columns: 110,
    rows: 32,
    steps: [
      { until: /frontend-dev +T4[\s\S]*backend-dev +T3|backend-dev +T3[\s\S]*frontend-dev +T4/ },
      { until: /render-page/ },
    ],
  },
  {
    name: 'tasks',
    label: 'The tasks of a session as a list, over the line to type into',
    ...DEMO,
    steps: [AT_WORK, { press: 'ctrl+t' }, { until: /T2 +Check.*\n.*T3 +Check/ }],
  },
  {
    name: 'pager',
    label: 'The whole log of a session in the pager',
    ...DEMO,
    steps: [AT_WORK, { press: 'ctrl+e' }, { until: /\d+ of \d+.*\/ search/ }],
  },
  {
    name: 'plan',
    label: 'Ctrl+C asks whether the plan is to be changed',
    ...DEMO,
    steps: [AT_WORK, { press: 'ctrl+c' }, { until: 'Do you want to modify the plan?' }],
  },
  {
    name: 'watch',
    label: 'A session that runs elsewhere, watched from another terminal',
    args: ['watch'],
    ...WIDE,
    besideDemo: true,
    steps: [AT_WORK],
  },
  {
    name: 'narrow',
    label: 'codemachine at work in a terminal of 40 columns and 10 rows',
    args: ['demo'],
    columns: 40,
    rows: 10,
    steps: [AT_WORK],
  },
]
