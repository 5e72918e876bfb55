import { type BuildPlace, type BuildStep, openOf } from './build-place.ts'
import { planFile } from './build-plan.ts'
import { doneEntries, markDone } from './demo-memory.ts'
import { patch } from './demo-patch.ts'
import { conclude, say, shell, steps, think } from './demo-words.ts'
import type { ReplyItem } from './reply.ts'
import { functionCall, updatePlan } from './reply-items.ts'

const PHASES = ['Planning', 'Building', 'Testing', 'Runtime']

/** A round of master-mind: nearly all in the first, the rest in those that follow. */
export function orchestration(parks: boolean, place: BuildPlace): readonly BuildStep[] {
  if (openOf(place, ...UP_TO_T6).length > 0) return building(place)
  if (!parks) return finishing(place)
  return openOf(place, 'T8').length > 0 ? finishingWhatIsPossible : tryingOnceMore
}

const UP_TO_T6 = ['T1', 'T2', 'T3', 'T4', 'T5', 'T6']

/** These steps, if one of these tasks is open. */
function ifOpen(place: BuildPlace, ids: readonly string[], steps: readonly BuildStep[]): readonly BuildStep[] {
  return openOf(place, ...ids).length > 0 ? steps : []
}

/** Marks those of these tasks that are not done. */
function markOpen(...ids: readonly string[]): BuildStep {
  return place => {
    const open = openOf(place, ...ids)
    if (open.length === 0) return [shell(`cat ${planFile}`)]
    const entries = open.map(id => `${id} ${place.plan.find(task => task.id === id)?.name ?? ''}`)
    return [patch(markDone(place, ...open), doneEntries(place, ...entries))]
  }
}

function runAgent(agent: string, task: string, paths?: readonly string[]): ReplyItem {
  return functionCall('run_agent', paths === undefined ? { agent, task } : { agent, task, paths })
}

const readme: readonly BuildStep[] = [
  () => [
    updatePlan(steps(3, ...PHASES)),
    runAgent('software-architect', 'T8: Write README.md: how to use and test it. Type what it says.'),
  ],
  () => [shell('cat README.md; git status --short')],
]

const looking: BuildStep = place => [
  say('I read the plan and look at the work.'),
  shell(`cat ${place.main} ${planFile}; git log --oneline; ls`),
]

const building = (place: BuildPlace): readonly BuildStep[] => [
  looking,
  ...ifOpen(
    place,
    ['T1'],
    [
      () => [
        updatePlan(steps(0, ...PHASES), 'By the phases of the plan.'),
        runAgent(
          'software-architect',
          'T1: Decide how reading-list is put together. Write docs/design.md and package.json. Give each part a folder of its own, so that they can be made side by side.',
        ),
      ],
    ],
  ),
  ...ifOpen(
    place,
    ['T2'],
    [
      () => [
        say('A folder for each part, as the criterion says. Before the parts are made: how will they be tested?'),
        runAgent('qa-engineer', 'T2: Write docs/testing.md: what has to be shown, sentence by sentence.', ['docs']),
      ],
    ],
  ),
  ...ifOpen(
    place,
    ['T1', 'T2'],
    [
      () => [shell(`cat docs/*.md && node -p "JSON.parse(fs.readFileSync('package.json')).scripts.test"`)],
      markOpen('T1', 'T2'),
    ],
  ),
  ...ifOpen(place, ['T3', 'T4', 'T6'], makingTheParts(openOf(place, 'T3', 'T4', 'T6'))),
  ...ifOpen(place, ['T4'], mendingThePage),
  ...ifOpen(
    place,
    ['T5'],
    [
      () => [
        updatePlan(steps(2, ...PHASES)),
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

function makingTheParts(open: readonly string[]): readonly BuildStep[] {
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
      updatePlan(steps(1, ...PHASES)),
      say('The list, the page and their tests touch nothing of each other’s, so all three are made at once.'),
      ...Object.entries(parts).flatMap(([id, part]) => (open.includes(id) ? [part] : [])),
    ],
    () => [say('They are back. What they say is one thing; I run the tests.'), shell('node --test')],
  ]
}

const mendingThePage: readonly BuildStep[] = [
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

const finishing = (place: BuildPlace): readonly BuildStep[] => [
  () => [shell(`cat ${planFile}; git log --oneline`)],
  ...ifOpen(
    place,
    ['T7'],
    [
      () => [
        updatePlan(steps(2, ...PHASES)),
        runAgent('qa-engineer', 'T7: Test the command as a person uses it, in test/command.test.js.', ['test']),
      ],
      () => [shell('node --test')],
    ],
  ),
  ...ifOpen(place, ['T8'], readme),
  markOpen('T7', 'T8'),
  () => [shell('git add -A && git commit -qm "Test the command, and say how to use it" && git log --oneline')],
  () => [conclude('T7 and T8 are done, and with them the whole plan.')],
]

const finishingWhatIsPossible: readonly BuildStep[] = [
  () => [shell(`cat ${planFile}; git log --oneline`)],
  ...['Ask validator.w3.org about the page.', 'Try it with a copy of the validator.', 'Try to reach it again.'].map(
    task => () => [runAgent('qa-engineer', `T7: ${task}`, ['docs'])],
  ),
  () => [shell('ls docs/validation.json')],
  ...readme,
  markOpen('T8'),
  () => [shell('git add -A && git commit -qm "Say how to use it" && git log --oneline')],
  () => [conclude('T8 is done. T7 is not: nothing answers at validator.w3.org.')],
]

const tryingOnceMore: readonly BuildStep[] = [
  () => [shell(`cat ${planFile}`)],
  ...['Ask validator.w3.org once more.', 'One last time.'].map(task => () => [
    runAgent('qa-engineer', `T7: ${task}`, ['docs']),
  ]),
  () => [conclude('T7 cannot be done here. Everything else is.')],
]
