import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { addDoneEntries, conclude, markDone, patch, planSteps, say, shell, think } from './actions.ts'
import { functionCall, type ModelRequest, type ReplyItem, updatePlan } from './model/reply.ts'
import { findSessionPaths, projectSources, type SessionPaths } from './project.ts'

const sources = projectSources('reading-list')

const PHASES = ['Planning', 'Building', 'Testing', 'Runtime']

/** The steps of a master-mind round, chosen by the open tasks: T1 to T6 in the first one, the rest in later ones. */
export function masterMindRound(impossibleTask: boolean, state: BuildState): readonly BuildStep[] {
  if (openTasks(state, ...UP_TO_T6).length > 0) return firstRound(state)
  if (!impossibleTask) return lastRound(state)
  return openTasks(state, 'T8').length > 0 ? lastRoundWithoutT7 : retryT7
}

const UP_TO_T6 = ['T1', 'T2', 'T3', 'T4', 'T5', 'T6']

/** The steps if one of these tasks is open, else none. */
function ifOpen(state: BuildState, ids: readonly string[], steps: readonly BuildStep[]): readonly BuildStep[] {
  return openTasks(state, ...ids).length > 0 ? steps : []
}

/** Marks the open ones of these tasks as done. */
function markOpen(...ids: readonly string[]): BuildStep {
  return state => {
    const open = openTasks(state, ...ids)
    if (open.length === 0) return [shell(`cat ${planFile}`)]
    const entries = open.map(id => `${id} ${state.plan.find(task => task.id === id)?.name ?? ''}`)
    return [patch(markDone(state, ...open), addDoneEntries(state, ...entries))]
  }
}

function runAgent(agent: string, task: string, paths?: readonly string[]): ReplyItem {
  return functionCall('run_agent', paths === undefined ? { agent, task } : { agent, task, paths })
}

const writeReadme: readonly BuildStep[] = [
  () => [
    updatePlan(planSteps(3, ...PHASES)),
    runAgent('software-architect', 'T8: Write README.md: how to use and test it. Type what it says.'),
  ],
  () => [shell('cat README.md; git status --short')],
]

const readPlanAndWork: BuildStep = state => [
  say('I read the plan and look at the work.'),
  shell(`cat ${state.main} ${planFile}; git log --oneline; ls`),
]

const firstRound = (state: BuildState): readonly BuildStep[] => [
  readPlanAndWork,
  ...ifOpen(
    state,
    ['T1'],
    [
      () => [
        updatePlan(planSteps(0, ...PHASES), 'By the phases of the plan.'),
        runAgent(
          'software-architect',
          'T1: Decide how reading-list is put together. Write docs/design.md and package.json. Give each part a folder of its own, so that they can be made side by side.',
        ),
      ],
    ],
  ),
  ...ifOpen(
    state,
    ['T2'],
    [
      () => [
        say('A folder for each part, as the criterion says. Before the parts are made: how will they be tested?'),
        runAgent('qa-engineer', 'T2: Write docs/testing.md: what has to be shown, sentence by sentence.', ['docs']),
      ],
    ],
  ),
  ...ifOpen(
    state,
    ['T1', 'T2'],
    [
      () => [shell(`cat docs/*.md && node -p "JSON.parse(fs.readFileSync('package.json')).scripts.test"`)],
      markOpen('T1', 'T2'),
    ],
  ),
  ...ifOpen(state, ['T3', 'T4', 'T6'], makeParts(openTasks(state, 'T3', 'T4', 'T6'))),
  ...ifOpen(state, ['T4'], fixPage),
  ...ifOpen(
    state,
    ['T5'],
    [
      () => [
        updatePlan(planSteps(2, ...PHASES)),
        runAgent('backend-dev', 'T5: Make bin/reading-list.js BOOKS.json PAGE.html of the two parts.', ['bin']),
      ],
      () => [
        shell(
          `node bin/reading-list.js books.json /dev/stdout | grep '<cite>'; node bin/reading-list.js; echo "exit code $?"`,
        ),
      ],
    ],
  ),
  markOpen('T3', 'T4', 'T5', 'T6'),
  () => [
    shell('git add -A && git commit -qm "Make a page of a list of books" && git status --short && git log --oneline'),
  ],
  () => [conclude('T1 to T6 are done and checked; T4 took two tries. T7 and T8 are left.')],
]

function makeParts(open: readonly string[]): readonly BuildStep[] {
  const parts: Readonly<Record<string, ReplyItem>> = {
    T3: runAgent('backend-dev', 'T3: Read and check the list, in src/list/read-list.js. See docs/design.md.', [
      'src/list',
    ]),
    T4: runAgent('frontend-dev', 'T4: Render the page, in src/page/render-page.js and style.css. See docs/design.md.', [
      'src/page',
    ]),
    T6: runAgent('qa-engineer', 'T6: Write test/list.test.js and test/page.test.js, by docs/testing.md.', ['test']),
  }
  return [
    () => [
      updatePlan(planSteps(1, ...PHASES)),
      say('The list, the page and their tests touch nothing of each other’s, so all three are made at once.'),
      ...Object.entries(parts).flatMap(([id, part]) => (open.includes(id) ? [part] : [])),
    ],
    () => [say('They are back. What they say is one thing; I run the tests.'), shell('node --test')],
  ]
}

const fixPage: readonly BuildStep[] = [
  () => [shell('node test/page.test.js')],
  () => [
    think(
      '**T4 falls short**\n\nA title with < in it is taken for HTML. The criterion of T4 says that it stands there as it was written, so T4 is not done, however good the page looks.',
    ),
    runAgent(
      'frontend-dev',
      'T4: Titles are put into the page as HTML: test/page.test.js fails on a title with <b>. Mend src/page/render-page.js, not the test.',
      ['src/page'],
    ),
  ],
  () => [shell('node --test')],
]

const lastRound = (state: BuildState): readonly BuildStep[] => [
  () => [shell(`cat ${planFile}; git log --oneline`)],
  ...ifOpen(
    state,
    ['T7'],
    [
      () => [
        updatePlan(planSteps(2, ...PHASES)),
        runAgent('qa-engineer', 'T7: Test the command as a person uses it, in test/command.test.js.', ['test']),
      ],
      () => [shell('node --test')],
    ],
  ),
  ...ifOpen(state, ['T8'], writeReadme),
  markOpen('T7', 'T8'),
  () => [shell('git add -A && git commit -qm "Test the command, and say how to use it" && git log --oneline')],
  () => [conclude('T7 and T8 are done, and with them the whole plan.')],
]

const lastRoundWithoutT7: readonly BuildStep[] = [
  () => [shell(`cat ${planFile}; git log --oneline`)],
  ...['Ask validator.w3.org about the page.', 'Try it with a copy of the validator.', 'Try to reach it again.'].map(
    task => () => [runAgent('qa-engineer', `T7: ${task}`, ['docs'])],
  ),
  () => [shell('ls docs/validation.json')],
  ...writeReadme,
  markOpen('T8'),
  () => [shell('git add -A && git commit -qm "Say how to use it" && git log --oneline')],
  () => [conclude('T8 is done. T7 is not: nothing answers at validator.w3.org.')],
]

const retryT7: readonly BuildStep[] = [
  () => [shell(`cat ${planFile}`)],
  ...['Ask validator.w3.org once more.', 'One last time.'].map(task => () => [
    runAgent('qa-engineer', `T7: ${task}`, ['docs']),
  ]),
  () => [conclude('T7 cannot be done here. Everything else is.')],
]

/** Names of the agents that are given tasks. */
export const taskAgents = ['software-architect', 'backend-dev', 'frontend-dev', 'qa-engineer']

/** An agent's steps for a task, by the request's text; none if it is no task of this build. */
export function stepsForTask(asked: string): readonly BuildStep[] {
  const task = /^T\d: .*/m.exec(asked)?.[0] ?? ''
  const [, planSteps = []] = Object.entries(stepsByTask).find(([beginning]) => task.startsWith(beginning)) ?? []
  return planSteps
}

/** Makes a page, and checks that a title in it is escaped. */
const MAKE_PAGE = `d=$(mktemp -d); node bin/reading-list.js books.json "$d/index.html" && grep -c '&lt;in&gt;' "$d/index.html"; rm -r "$d"`
const REACH_VALIDATOR = `node -e "fetch('https://validator.w3.org')"`

const designTask: readonly BuildStep[] = [
  () => [say('First what is asked for.'), shell('cat .codemachine/inputs/specifications.md books.json')],
  () => [
    think(
      '**Three parts**\n\nReading, rendering, and a command that joins them. If each has a folder of its own, they can be made at the same time.',
    ),
    patch(sources.add('docs/design.md'), sources.add('package.json')),
  ],
  () => [conclude('docs/design.md has the parts and their folders, and package.json says how to run the tests.')],
]

const readmeTask: readonly BuildStep[] = [
  () => [shell('cat docs/design.md bin/reading-list.js')],
  () => [patch(sources.add('README.md'))],
  () => [say('Now what it says to type.'), shell(MAKE_PAGE)],
  () => [conclude('README.md says how to use and test it. I typed what it says, and the page was there.')],
]

const testPlanTask: readonly BuildStep[] = [
  () => [shell('cat .codemachine/inputs/specifications.md docs/design.md')],
  () => [patch(sources.add('docs/testing.md'))],
  () => [
    conclude('docs/testing.md says what has to be shown: three parts, and titles with signs that HTML has a use for.'),
  ],
]

const listTask: readonly BuildStep[] = [
  () => [
    think(
      '**What can be wrong in a list?**\n\nNo array, a book without a title or an author, a word where true or false belongs. The number of the book is what somebody needs to find it.',
    ),
    say('The list is checked where it is read, so that nobody has to look at raw JSON later.'),
    patch(sources.add('src/list/read-list.js')),
  ],
  () => [
    shell(
      `node -e "import('./src/list/read-list.js').then(list => list.readList('books.json')).then(books => fs.writeSync(1, books.length + ' books'))"`,
    ),
  ],
  () => [conclude('src/list/read-list.js reads the list and says which book is wrong, and how. It reads books.json.')],
]

const commandTask: readonly BuildStep[] = [
  () => [shell('cat src/list/read-list.js src/page/render-page.js')],
  () => [patch(sources.add('bin/reading-list.js'))],
  () => [shell(MAKE_PAGE)],
  () => [conclude('bin/reading-list.js makes the page. I made one of books.json.')],
]

const pageTask: readonly BuildStep[] = [
  () => [
    think('**One file**\n\nThe style goes into the page. Two sections: what is left to read, then what was read.'),
    patch(sources.add('src/page/render-page.js'), sources.add('src/page/style.css')),
  ],
  () => [
    say('It has no page to stand in yet, so I look at least whether it parses.'),
    shell('node --check src/page/render-page.js'),
  ],
  () => [conclude('src/page/render-page.js makes the page, with its style in it, light and dark.')],
]

const pageFixTask: readonly BuildStep[] = [
  () => [shell('node test/page.test.js')],
  () => [
    say('The test is right: I put titles into the page as HTML. They have to be escaped where HTML is made.'),
    patch(sources.update('src/page/render-page.js', 'src/page/render-page.escape.patch')),
  ],
  () => [shell('node test/page.test.js')],
  () => [conclude('Titles, authors and years are escaped now, and test/page.test.js passes.')],
]

const testsTask: readonly BuildStep[] = [
  () => [
    think(
      '**From the outside**\n\nThe parts are being made at this moment, so I go by docs/testing.md and not by their code. A title with < and & in it is the case that is easily forgotten.',
    ),
    say('I write these from the specification.'),
    patch(sources.add('test/list.test.js'), sources.add('test/page.test.js')),
  ],
  () => [shell('node --check test/list.test.js && node --check test/page.test.js')],
  () => [
    conclude(
      'test/list.test.js and test/page.test.js are written. They could not be run while the parts are being made.',
    ),
  ],
]

const commandTestTask: readonly BuildStep[] = [
  () => [patch(sources.add('test/command.test.js'))],
  () => [shell('node test/command.test.js')],
  () => [conclude('test/command.test.js runs the command as a person does; it passes.')],
]

/** Tries to reach the validator, and fails without a network. */
function validatorTask(words: string): readonly BuildStep[] {
  return [() => [shell(REACH_VALIDATOR)], () => [conclude(words)]]
}

/** By the beginning of the request, so that an interrupted task can be requested again. */
const stepsByTask: Readonly<Record<string, readonly BuildStep[]>> = {
  'T1:': designTask,
  'T2:': testPlanTask,
  'T3:': listTask,
  'T4: Render': pageTask,
  'T4:': pageFixTask,
  'T5:': commandTask,
  'T6:': testsTask,
  'T7: Test': commandTestTask,
  'T7: Ask validator.w3.org about': validatorTask(
    'There is no network here, so nobody at validator.w3.org can be asked. Nothing was written.',
  ),
  'T7: Try it': validatorTask('I looked for a copy of the validator on this machine. There is none.'),
  'T7: Try to': validatorTask(
    'A page that I check myself is not one that the validator has checked; I have not made up an answer of its own.',
  ),
  'T7: Ask': validatorTask('There is still no network.'),
  'T7:': validatorTask('The validator cannot be reached from here. A person has to ask it, or to change the task.'),
  'T8:': readmeTask,
}

/** A task in the plan's file. */
interface PlannedTask {
  id: string
  name: string
  details: string
  done: boolean
  parked?: string
}

/** The state of a build at a request, read from its files, so that an interrupted round can be played again. */
export interface BuildState extends SessionPaths {
  /** In order; empty before there is a plan. */
  plan: readonly PlannedTask[]
  /** The turn's last user message. */
  asked: string
}

/** One step of a conversation: the reply's items, made from the state of the build. */
export type BuildStep = (state: BuildState) => readonly ReplyItem[]

/** Reads the state of the build to which a request belongs. */
export function readBuildState({ developerTexts, userTexts }: ModelRequest): BuildState {
  // Only main agents are told of a MAIN.md; every agent knows the plan.
  const found = findSessionPaths(developerTexts) ?? { main: 'MAIN.md', kb: '.codemachine/kb' }
  const directory = /<cwd>([^<]+)<\/cwd>/.exec(userTexts.join('\n'))?.[1]
  return {
    ...found,
    tasks: planFile,
    plan: directory === undefined ? [] : readPlan(join(directory, planFile)),
    asked: userTexts.at(-1) ?? '',
  }
}

/** The ids of the open ones of these tasks. */
export function openTasks({ plan }: BuildState, ...ids: readonly string[]): string[] {
  return ids.filter(id => plan.find(task => task.id === id)?.done !== true)
}

function readPlan(path: string): PlannedTask[] {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).tasks
  } catch {
    // There is no plan yet, or a person is writing it.
    return []
  }
}

/** Path of the plan, relative to the work directory. */
export const planFile = '.codemachine/plan/tasks.json'

/** The plan as JSON. `impossibleTask`: T7 is one that cannot be done without a network. */
export function planText(impossibleTask: boolean): string {
  return sources.text(`codemachine/plan/${impossibleTask ? 'tasks.impossible.json' : 'tasks.json'}`)
}
