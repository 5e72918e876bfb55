import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Action, findSessionPaths, markDone, patch, play, projectSources } from '../src/demo/actions.ts'
import { agentsScript } from '../src/demo/agents-script.ts'
import {
  functionCall,
  type ModelRequest,
  message,
  type ReplyItem,
  reply,
  roundsScript,
  type ScriptStep,
  shell,
} from '../src/demo/model/reply.ts'
import { createDemoRepository } from '../src/demo/project.ts'
import { IMPATIENT, openRealScene, type RealScene, type RealSceneOptions } from '../tests/support/real-scene.ts'
import { hold, usageLimitReached } from '../tests/support/scripted-model.ts'

/** Where the model waits until a tour goes on: resolves once the gate of this name is opened. */
export type Held = (gate: string) => Promise<void>

/** Opens the place of a tour, in which the model plays its part. */
export type OpenScene = (held: Held) => Promise<RealScene>

const LOGGED_IN = { name: 'linkcheck', account: () => null }
const QUIET_SETTINGS = 'keep_awake = false\n'

/** A project, and no session yet. */
export const emptyPlace: OpenScene = () => openRealScene([], LOGGED_IN)

/** The project of the demo, with its tests as a gate, and a person who has every claim reviewed. */
async function openProject(
  rounds: readonly (readonly ScriptStep[])[],
  options: RealSceneOptions = {},
): Promise<RealScene> {
  const scene = await openRealScene(roundsScript(rounds), {
    ...LOGGED_IN,
    git: false,
    person: QUIET_SETTINGS,
    provider: IMPATIENT,
    ...options,
  })
  await createDemoRepository(scene.place.directory, scene.place.env)
  return scene
}

const sources = projectSources('linkcheck')
const demoRounds = sources.json<readonly { steps: readonly (readonly Action[])[] }[]>('rounds.json')

/** The steps `from` to `to` of a round of the demo, both counted from 0 and with them. */
function ofDemo(round: number, from = 0, to = 100): ScriptStep[] {
  return (demoRounds[round]?.steps ?? []).slice(from, to + 1).map(actions => acts(...actions))
}

function acts(...actions: readonly Action[]): ScriptStep {
  return request => {
    const session = pathsIn(request)
    const scene = { sources, session, plan: sources.text('codemachine/session/tasks.json') }
    return reply(...actions.map(action => play(action, scene)))
  }
}

function pathsIn({ developerTexts }: ModelRequest) {
  const session = findSessionPaths(developerTexts)
  if (session === null) throw new Error('the developer instructions name no .codemachine/projects/<id>/MAIN.md')
  return session
}

/** A step that is answered once the gate is open. */
function after(until: () => Promise<void>, step: ScriptStep): ScriptStep {
  return async request => {
    await until()
    return typeof step === 'function' ? step(request) : step
  }
}

const marks =
  (...ids: readonly string[]): ScriptStep =>
  request =>
    reply(patch(markDone(pathsIn(request), ...ids)))

const says = (text: string): ScriptStep => reply(message(text, { phase: 'final_answer' }))

const asks = reply(
  functionCall('ask_person', {
    question: 'Should links to other sites be checked, too?',
    options: ['No, files and headings are enough', 'Yes, with a request to each'],
    assumption: 'No: the goal says files and headings',
  }),
)

/** What a person wants of the plan in the second round: T3 gets another name, and T5 comes before T4. */
const replans: ScriptStep = request => {
  const { tasks } = JSON.parse(sources.text('codemachine/session/tasks.json'))
  const [t1, t2, t3, t4] = tasks
  const t5 = {
    ...t3,
    id: 'T5',
    name: 'Understand percent-encoded names',
    details: "my%20notes.md is the file 'my notes.md'.",
    acceptanceCriteria: 'node --test passes, with a test for it.',
  }
  const changed = [t1, t2, { ...t3, name: 'Check headings, also those of other files' }, t5, t4]
  return reply(
    shell(`cat > ${pathsIn(request).tasks} <<'END'\n${JSON.stringify({ tasks: changed }, null, 2)}\nEND`, {
      login: false,
    }),
  )
}

const FINDING = {
  severity: 'major',
  file: 'README.md',
  line: 12,
  problem: 'The README does not say that links to other sites are left alone, so a reader takes them for checked.',
  mend: 'Say it where the README tells what is left out.',
}
const FINDS = { verdict: 'findings', summary: 'It works; one thing is not told.', findings: [FINDING] }
const AGREES = { verdict: 'agreed', summary: 'Each part of the goal is there, and tests show it.', findings: [] }

/** A round that changes nothing, and claims that all is done. */
const looksAgain = [
  acts({ say: 'I look at the whole again, and change nothing.' }, { shell: 'node --test && git status --short' }),
  acts({ patch: [{ claimDone: true }] }),
  says('All tests pass, and each part of the goal is there.'),
]

/** A night on the demo's project: a failing test, a question, a change of plan, a refused claim, a review, and done. */
export const night: OpenScene = held =>
  openProject([
    ofDemo(0),
    [
      ...ofDemo(1, 0, 2),
      ...ofDemo(1, 3, 3).map(step => after(() => held('failed'), step)),
      asks,
      after(
        () => held('asked'),
        acts({ say: 'Then I go on with files and headings.' }, { shell: 'git status --short' }),
      ),
      ...ofDemo(1, 4, 7),
      after(() => held('work'), says('Next is T3.')),
    ],
    [replans, says('T5 is new, and comes before the README. T3 says now what it is about.')],
    [
      acts({ shell: 'rm -rf build; git add -A && git commit -qm "Find links and check files" && git status --short' }),
      ...ofDemo(2, 2, 4),
      acts({ patch: [{ update: 'test/check.test.js', by: 'test/check.test.encoded-names.patch' }] }),
      marks('T1', 'T2', 'T3', 'T5', 'T4'),
      ...['core-done', 'all-done'].map(part =>
        acts({ patch: [{ update: '{main}', by: `codemachine/session/MAIN.${part}.patch` }] }),
      ),
      acts({ patch: [{ claimDone: true }] }),
      says('All five tasks are done.'),
    ],
    [
      after(
        () => held('refused'),
        acts(
          { say: 'The test is right: editors write a space as %20.' },
          { patch: [{ update: 'src/check.js', by: 'src/check.encoded-names.patch' }] },
        ),
      ),
      acts({ shell: 'node --test && git add -A && git commit -qm "Understand percent-encoded names"' }),
      says('The test passes now.'),
    ],
    looksAgain,
    [after(() => held('gate'), says(JSON.stringify(FINDS)))],
    [
      after(
        () => held('review'),
        acts(
          { say: 'The reviewer is right.' },
          {
            shell:
              "printf '\\nLinks to other sites are left alone.\\n' >> README.md && git commit -qam 'Say what is left out'",
          },
        ),
      ),
      says('The README says it now.'),
    ],
    looksAgain,
    [says(JSON.stringify(AGREES))],
  ])

/** Two sessions that have ended, for those that are told of sessions. */
export const twoNights: OpenScene = () => {
  const claims = acts({ shell: "sed -i 's/^finite_incantatem: false/finite_incantatem: true/' {main}" })
  return openProject([
    [...ofDemo(0, 0, 2), ...ofDemo(1, 1, 1), marks('T1', 'T2', 'T3', 'T4'), claims, says('That was all.')],
    [claims, says('I looked again, and changed nothing.')],
    [acts({ shell: 'echo "Colours" >> IDEA.md' }), says('Half of it is there.')],
  ])
}

/** The account's usage is used up in the first round, for two hours and a half. */
export const usedUp: OpenScene = () => {
  const resetsAt = Math.round(Date.now() / 1000) + 2.5 * 3_600
  const windows = { primary: { usedPercent: 100, windowMinutes: 300, resetsAt } }
  return openProject([[...ofDemo(0, 0, 3), usageLimitReached(resetsAt, windows)]])
}

/** Who does which task of the plan of ten agents, in which folder, and what it says and does. */
const TEAM = [
  ['uxui-designer', 'Draw the screens', 'Planning', 'design'],
  ['software-architect', 'Set up the modules', 'Planning', 'modules'],
  ['frontend-dev', 'Make the homepage', 'Building', 'web/home'],
  ['frontend-dev', 'Make the cart', 'Building', 'web/cart'],
  ['backend-dev', 'Take orders', 'Building', 'api/orders'],
  ['backend-dev', 'Keep the stock', 'Building', 'api/stock'],
  ['backend-dev', 'Send the mails', 'Building', 'api/mail'],
  ['qa-engineer', 'Test the checkout', 'Testing', 'tests'],
  ['performance-engineer', 'Measure the start', 'Testing', 'bench'],
  ['technical-writer', 'Write the guide', 'Runtime', 'docs'],
] as const

const TEAM_PLAN = TEAM.map(([, name, phase, folder], at) => ({
  id: `T${at + 1}`,
  name,
  details: `In ${folder}/.`,
  acceptanceCriteria: `${folder}/ has it, and its test passes.`,
  phase,
  done: false,
  subtasks: [],
}))

const SHOP = `# A shop for tea

Visitors see what there is, put it into a cart, and order it; the shop keeps the stock and writes a mail for each order.
`

/** A build whose plan is asked about, and in which ten agents work at once. */
export const tenAgents: OpenScene = async held => {
  const never = () => held('never')
  const calls = TEAM.map(([agent, name, , folder], at) =>
    functionCall('run_agent', { agent, task: `T${at + 1}: ${name}.`, paths: [folder] }),
  )
  const works = (_: number, { userTexts }: ModelRequest): ScriptStep[] => {
    const at = Number(/^T(\d+): /m.exec(userTexts.join('\n'))?.[1] ?? 1) - 1
    const [, name, , folder] = TEAM[at] ?? TEAM[0]
    const file = `${folder}/${name.split(' ').at(-1)}.md`
    const ends: ReplyItem = at % 3 === 1 ? shell('npm test', { login: false, yieldMs: 600_000 }) : hold(never())
    return [
      reply(
        message(`I begin with ${file}, and look at what is there.`),
        shell('ls .codemachine/inputs; cat package.json', { login: false }),
      ),
      reply(
        shell(`printf '# ${name}\\n\\nWhat is wanted, and how it is shown.\\n' > ${file} && cat ${file}`, {
          login: false,
        }),
      ),
      after(() => held('begun'), {
        ...reply(message(`${name}: the first part stands. ${SPOKEN}`, { chunkSize: 8 }), ends),
        deltaMs: 60,
      }),
      after(never, says('Done.')),
    ]
  }
  const planned = `mkdir -p .codemachine/plan && cat > .codemachine/plan/tasks.json <<'END'\n${JSON.stringify({ tasks: TEAM_PLAN }, null, 2)}\nEND`
  const names = [...new Set(TEAM.map(([agent]) => agent))]
  const script = agentsScript({
    'agents-builder': () => [
      reply(message('I read what is wanted, and who there is.'), shell('cat .codemachine/inputs/specifications.md')),
      reply(shell(planned)),
      says('The plan has ten tasks in four phases, each for one agent.'),
    ],
    'master-mind': () => [
      reply(message('Their folders are apart, so all ten can work at once.'), ...calls),
      after(never, says('Done.')),
    ],
    ...Object.fromEntries(names.map(name => [name, works])),
  })
  const scene = await openRealScene(script, {
    ...LOGGED_IN,
    name: 'tea-shop',
    person: `${QUIET_SETTINGS}[agents]\nat_once = 10\n`,
  })
  const { directory } = scene.place
  const inputs = join(directory, '.codemachine', 'inputs')
  await mkdir(inputs, { recursive: true })
  await writeFile(join(inputs, 'specifications.md'), SHOP)
  await writeFile(
    join(directory, 'package.json'),
    '{ "name": "tea-shop", "scripts": { "test": "node all-tests.js" } }\n',
  )
  await writeFile(join(directory, 'all-tests.js'), 'setTimeout(() => {}, 9e5)\n')
  return scene
}

/** What each of them says, until it is ended. */
const SPOKEN =
  'Next I write the test that shows it, then what the test asks for. Two things are open in the specification: how many there can be, and what is said when there is none. I take the simpler one of each, and write down why.'
