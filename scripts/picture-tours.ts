import type { Key } from '../tests/support/emulator-keys.ts'
import type { Awaited } from '../tests/support/emulator-wait.ts'
import { emptyPlace, night, type OpenScene, tenAgents, twoNights, usedUp } from './picture-scenes.ts'

/** A picture of the terminal as it is at this moment of a tour. */
export interface Shot {
  /** Name of its files, before the size or the scheme. */
  shot: string
  /** What it shows, for those who cannot see it. */
  label: string
  /** Taken in a terminal of 40 columns and 10 rows, too. */
  small?: true
  /** Only the rows from the last one with the first of these (null: the first row) to the one with the other; left out: all. */
  part?: readonly [from: RegExp | null, to: RegExp]
}

/** A picture of a page, as `NAME-light.png` and `NAME-dark.png`: of a view of `codemachine web`; `of` left out: of the report. */
export interface PageStep {
  page: string
  label: string
  of?: 'now' | 'live'
  /** In a window of 1,280 px; left out: on a phone of 390 px. */
  wide?: true
}

/** What a person does, waits to see (on the screen, or with what has scrolled away), or what the model goes on with. */
export type Step =
  | { until: Awaited }
  | { printed: Awaited }
  /** Until no row of the screen has this text any more. */
  | { gone: string }
  | { press: Key }
  | { type: string }
  | { open: string }
  | PageStep
  | Shot

export interface Size {
  columns: number
  rows: number
}

/** A real run, and the pictures that are taken on the way. */
export interface Tour {
  args: readonly string[]
  scene: OpenScene
  /** Sessions that have ended before. */
  before?: readonly (readonly string[])[]
  /** Of pictures that a page shows by themselves: one size, light and dark. Left out: those of the gallery, dark. */
  linked?: Size
  steps: readonly Step[]
}

const WIDE = { columns: 100, rows: 30 }

/** Once the second round of the demo has tested what it has built. */
const AT_WORK: Step = { until: /\$ mkdir -p build/ }

/** The pictures of the documents. */
const LINKED: readonly Tour[] = [
  {
    args: [],
    scene: emptyPlace,
    linked: WIDE,
    steps: [
      { until: /Login +[^… ]/ },
      {
        shot: 'start',
        label: 'The start screen of codemachine: logo, project, login, and a line to type a goal into',
      },
    ],
  },
  {
    args: ['demo', '--fast'],
    scene: emptyPlace,
    linked: { columns: 110, rows: 70 },
    steps: [
      { printed: /Now yours/ },
      {
        shot: 'morning',
        label: 'The morning: a check that missed a wrong version, one more check, all sentences proved, and the report',
        part: [/wrong version 1 for S1: no check/, /^report /],
      },
    ],
  },
  {
    args: ['demo'],
    scene: emptyPlace,
    linked: WIDE,
    steps: [
      AT_WORK,
      { shot: 'run', label: 'codemachine at work: what the agent says, does and changes' },
      { press: 'ctrl+c' },
      { until: 'Do you want to modify the plan?' },
      { shot: 'plan', label: 'Ctrl+C asks whether the plan is to be changed' },
    ],
  },
  {
    args: ['demo', '--template', 'build'],
    scene: emptyPlace,
    linked: { columns: 110, rows: 32 },
    steps: [
      { until: /frontend-dev +T4[\s\S]*backend-dev +T3|backend-dev +T3[\s\S]*frontend-dev +T4/ },
      { until: /T4 +(writing|running)/ },
      { shot: 'build', label: 'A build at work: the task, its phase, and agents side by side' },
    ],
  },
]

/** To the row of a list that is so many below the first. */
const downTo = (rows: number): Step[] => Array.from({ length: rows }, () => ({ press: 'down' }))

const GOAL = 'Build linkcheck, a command that finds the links in Markdown files that lead nowhere'

/** The moments of the gallery, in its order. */
const GALLERY: readonly Tour[] = [
  {
    args: [],
    scene: twoNights,
    before: [
      ['--plain', '--rounds', '3', GOAL],
      ['--plain', '--rounds', '1', 'Print broken links in red, unless NO_COLOR is set'],
    ],
    steps: [
      { until: /Login +[^… ]/ },
      {
        shot: 'start',
        label: 'The start screen: what Enter starts, and the sessions that you can resume',
      },
      { type: '/' },
      { until: 'Enter runs' },
      { shot: 'slash', label: 'The menu of commands, after you type a slash' },
      { press: 'backspace' },
      { gone: 'Enter runs' },
      { type: '/sessions' },
      { until: '› /sessions' },
      { press: 'enter' },
      { until: /^› [a-z]+.*Print/m },
      { shot: 'sessions', label: 'All sessions of this directory' },
    ],
  },
  {
    args: ['start'],
    scene: tenAgents,
    steps: [
      { until: '[Y/n]' },
      { press: 'enter' },
      { until: /Start the build\?/ },
      { shot: 'first-plan', label: 'The plan of a build, and the question: start it?' },
      { press: 'enter' },
      { printed: /(● [\w-]+ +T\d[\s\S]*){10}/ },
      { open: 'begun' },
      { until: /running n/ },
      { shot: 'ten-agents', label: 'Ten agents at work side by side', small: true },
      { press: 'alt+a' },
      { until: /^Agents, 10 at work/m },
      { shot: 'agents', label: 'The list of the agents at work', small: true },
      ...downTo(3),
      { press: 'enter' },
      { until: /T\d.*\n[\s\S]*first part stands/ },
      { shot: 'agent', label: 'One agent: what it does and says now' },
    ],
  },
  {
    args: ['--review', '--verify', 'node --test --test-isolation=none', GOAL],
    scene: night,
    steps: [
      { printed: /exit 1[\s\S]*running/ },
      { shot: 'failed-command', label: 'A command that fails, with the end of its output' },
      { open: 'failed' },
      { until: /^\? Q1/m },
      { shot: 'question', label: 'A question of the agent, above the input field', small: true },
      { page: 'web-now', of: 'now', label: 'The page on a phone: what needs you comes first, and one tap answers' },
      { page: 'web-now-wide', of: 'now', wide: true, label: 'The page on a computer: all sessions of this machine' },
      { press: 'tab' },
      { until: /Until you answer/ },
      { shot: 'question-open', label: 'The question after Tab: a digit answers it' },
      { press: { text: '1' } },
      { until: /Answered Q1/ },
      { shot: 'answered', label: 'After the answer: which agent reads it, and when' },
      { open: 'asked' },
      AT_WORK,
      { until: /running/ },
      { shot: 'work', label: 'The agent at work: what it says, does and changes', small: true },
      { page: 'web-live', of: 'live', label: 'A session on the page: what the agent says and does now' },
      { page: 'web-live-wide', of: 'live', wide: true, label: 'A session on the page of a computer' },
      { press: 'ctrl+t' },
      { until: /T2 +Check/ },
      { shot: 'checklist', label: 'The tasks of the session' },
      { press: 'esc' },
      { gone: 'T2  Check' },
      { press: 'ctrl+x' },
      { until: 'All commands' },
      { shot: 'palette', label: 'The list of all commands, after Ctrl+X', small: true },
      { press: 'esc' },
      { gone: 'All commands' },
      { press: { text: '?' } },
      { until: 'In the field' },
      { shot: 'keys', label: 'The keys' },
      { press: 'esc' },
      { gone: 'In the field' },
      { press: 'alt+g' },
      { until: /^Changes \+/m },
      { shot: 'diff', label: 'The changes since the session began, file by file', small: true },
      ...downTo(4),
      { press: 'enter' },
      { until: /^@@/m },
      { shot: 'diff-file', label: 'The changes of one file', small: true },
      { press: { text: 'q' } },
      { until: /^Changes \+/m },
      { press: { text: 'q' } },
      { gone: 'Changes +' },
      { press: 'ctrl+e' },
      { until: /\d+–\d+ of \d/ },
      { shot: 'log', label: 'The whole log of the session' },
      { press: { text: 'q' } },
      { gone: ' search ' },
      { press: 'esc' },
      { until: 'What next?' },
      { shot: 'interrupted', label: 'After Esc: what next?', small: true },
      { press: { text: '3' } },
      { press: 'enter' },
      { gone: '3. Change the plan' },
      { type: 'Names with spaces have to work, too' },
      { press: 'enter' },
      { until: /shown above\. Start\?/ },
      { shot: 'plan-change', label: 'What changed in the plan, task by task' },
      { press: 'enter' },
      { printed: /Not accepted/ },
      { until: /running/ },
      { shot: 'refused', label: 'The agent says that it is done; codemachine refuses, and says why' },
      { open: 'refused' },
      { printed: /Not accepted[\s\S]*✔ gate/ },
      { shot: 'gate', label: 'The tests pass, and a second agent reviews the work' },
      { open: 'gate' },
      { until: /major/ },
      { shot: 'review', label: 'The reviewer does not agree' },
      { open: 'review' },
      { printed: /done, gates pass/ },
      { until: /^report /m },
      // Below it stands where the report is: a path of this machine.
      { shot: 'end', label: 'The summary at the end of a session', part: [null, /codemachine rewind/] },
      { page: 'report', label: 'The report as a page' },
    ],
  },
  {
    args: ['--rounds', '5', GOAL],
    scene: usedUp,
    steps: [{ until: /waiting until/ }, { shot: 'limit', label: 'Waiting until the usage limit resets' }],
  },
]

export const TOURS: readonly Tour[] = [...LINKED, ...GALLERY]
