import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { loadPrompt } from '../base/package.ts'
import { claimDone, conclude, patch, say, shell, think } from './actions.ts'
import {
  type BuildState,
  type BuildStep,
  masterMindRound,
  openTasks,
  planFile,
  planText,
  readBuildState,
  stepsForTask,
  taskAgents,
} from './build-rounds.ts'
import { type ModelRequest, reply, type Script, type ScriptStep, turnsScript } from './model/reply.ts'
import { createRepository, projectSources } from './project.ts'

const sources = projectSources('reading-list')

/**
 * The script of a build: four agents write a small program in eight tasks, three of them at once; one task fails its
 * acceptance criterion at first. `impossibleTask`: T7 can never be done, and is tried five times. `watchable` sends
 * text at reading speed. An interrupted round is played again from the state of the plan.
 */
export function buildScript(pace: 'instant' | 'watchable', { impossibleTask }: { impossibleTask: boolean }): Script {
  const deltaMs = pace === 'watchable' ? 40 : 0
  const part = (stepsFor: (state: BuildState) => readonly BuildStep[]): AgentPart => {
    const begun = new Map<number, readonly ScriptStep[]>()
    return (_, request) => {
      const known = begun.get(request.conversation)
      if (known !== undefined) return known
      const steps = stepsFor(readBuildState(request)).map(step => scriptStep(step, deltaMs))
      begun.set(request.conversation, steps)
      return steps
    }
  }
  return agentsScript({
    'agents-builder': part(() => teamBuilding(impossibleTask)),
    'master-mind': part(state => masterMindRound(impossibleTask, state)),
    'project-summarizer': part(() => summarizing),
    'last-look': part(() => lastLook),
    replan: part(() => replanning),
    ...Object.fromEntries(taskAgents.map(name => [name, part(({ asked }) => stepsForTask(asked))])),
  })
}

function scriptStep(step: BuildStep, deltaMs: number): ScriptStep {
  return request => ({ ...reply(...step(readBuildState(request))), deltaMs })
}

/**
 * Creates the git repository of the build in `directory`, which has to be empty or missing: a list of books in one
 * commit, and the specification where `codemachine start` reads it. `env`: the environment of git.
 */
export async function createBuildRepository(
  directory: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  await createRepository(
    directory,
    { files: { 'books.json': sources.text('books.json') }, message: 'Begin with a list' },
    env,
  )
  const specification = join(directory, '.codemachine', 'inputs', 'specifications.md')
  await mkdir(dirname(specification), { recursive: true })
  await writeFile(specification, sources.text('codemachine/inputs/specifications.md'))
}

/** The round of project-summarizer, after each of master-mind. */
const summarizing: readonly BuildStep[] = [
  () => [shell(`cat ${planFile}; git log --oneline; git status --short`)],
  state => [conclude(summaryOf(state))],
]

function summaryOf(state: BuildState): string {
  const open = state.plan.filter(({ done }) => !done)
  const [first] = open
  if (first === undefined)
    return 'All eight tasks are done, and the tests pass. To use it: node bin/reading-list.js books.json index.html'
  if (first.parked !== undefined)
    return 'Seven of eight tasks are done, and the tests pass. T7, the validator, needs somebody with a network. To use what there is: node bin/reading-list.js books.json index.html'
  if (openTasks(state, 'T1', 'T2', 'T3', 'T4', 'T5', 'T6').length > 0)
    return `${state.plan.length - open.length} of ${state.plan.length} tasks are done. Next: ${first.id} ${first.name}.`
  return open.length === 1 && first.id === 'T7'
    ? 'Everything but T7 is done. T7 wants an answer of validator.w3.org, and there is no network here. Next: T7.'
    : `T1 to T6 are done: reading-list reads books.json and makes a page. T4 took two tries, as titles were put into the page as HTML at first. Next: ${open.map(({ id }) => id).join(' and ')}.`
}

/** A change of plan: adds the person's words to the last open task. */
const replanning: readonly BuildStep[] = [
  state => [say('I read the plan.'), shell(`cat ${state.main} ${planFile}`)],
  state => {
    const last = state.plan.findLast(({ done }) => !done)
    if (last === undefined) return [conclude('Every task is done, so a script like me can change nothing any more.')]
    const wish = state.asked.replace(/^Change the plan:\s*/, '').trim()
    const plan = state.plan.map(task =>
      task === last ? { ...task, details: `${task.details} A person wants: ${wish}` } : task,
    )
    return [shell(`cat > ${planFile} <<'EOF'\n${JSON.stringify({ tasks: plan }, null, 2)}\nEOF`)]
  },
  () => [
    conclude(
      'What you said stands in the details of the last task that is open. A script plays my part, so it can do no more than that.',
    ),
  ],
]

/** The last look at the whole project, which changes nothing and so may claim that all is done. */
const lastLook: readonly BuildStep[] = [
  () => [
    say('I look as though somebody else had built it.'),
    shell('cat .codemachine/inputs/specifications.md; git log --oneline; git status --short; ls -R bin src test docs'),
  ],
  () => [shell('node --test')],
  () => [
    think(
      '**Sentence by sentence**\n\nOne page, one file, what is left first, titles as written, errors that say which book.',
    ),
    shell(
      `node bin/reading-list.js books.json /dev/stdout; echo "exit code $?"; grep -rnE "skip|only|todo" test || echo "no test is left out"`,
    ),
  ],
  memory => [patch(claimDone(memory))],
  () => [conclude('Each sentence of the specification is there, all tests pass, and I have changed nothing.')],
]

/** The agents-builder's round: writes the project's own prompts, and the plan. */
function teamBuilding(impossibleTask: boolean): readonly BuildStep[] {
  return [
    () => [
      say('I read what is wanted, and who there is.'),
      shell('cat .codemachine/inputs/specifications.md .codemachine/agents/agents-config.json; git log --oneline; ls'),
    ],
    () => [
      think(
        '**Who is needed?**\n\nThe specification is short: a list, a page, a command. Four of the agents are enough, each with a few sentences about this project.',
      ),
      patch(...taskAgents.map(name => sources.add(`.codemachine/agents/${name}.md`, `codemachine/agents/${name}.md`))),
    ],
    () => [
      say('Now the plan: eight tasks, each with a check that can be run.'),
      shell(
        `mkdir -p .codemachine/plan && cat > ${planFile} <<'EOF'\n${planText(impossibleTask)}EOF\nnode -p "JSON.parse(fs.readFileSync('${planFile}')).tasks.length + ' tasks'"`,
      ),
    ],
    () => [conclude('Four agents have prompts for this project, and plan/tasks.json has eight tasks in four phases.')],
  ]
}

/** The steps of an agent in its nth conversation, counted from 0 among its own. */
export type AgentPart = (nth: number, request: ModelRequest) => readonly ScriptStep[]

/** The rounds of a build's main agents. */
type MainPart = 'agents-builder' | 'master-mind' | 'project-summarizer' | 'last-look' | 'replan'

/** The parts of a build: of main agents by the purpose of the round, of agents that are given tasks by name. */
type AgentParts = Readonly<Record<string, AgentPart>> & Readonly<Partial<Record<MainPart, AgentPart>>>

/**
 * A script in which agents work side by side: conversations are assigned by their developer instructions, not by their
 * order. A request of an agent without a part fails.
 */
export function agentsScript(parts: AgentParts): Script {
  const seen = new Map<string, number[]>()
  return turnsScript(request => {
    const name = findAgentName(request.developerTexts.join('\n'), Object.keys(parts))
    const part = name === null ? undefined : parts[name]
    if (name === null || part === undefined) throw new Error('the developer instructions name no agent of this script')
    const own = seen.get(name) ?? []
    if (!own.includes(request.conversation)) own.push(request.conversation)
    seen.set(name, own)
    const step = part(own.indexOf(request.conversation), request)[request.step]
    return step
  })
}

/** The prompt file with which the instructions of each main part begin. */
const PROMPTS: Readonly<Record<MainPart, string>> = {
  'agents-builder': 'agents/agents-builder',
  'master-mind': 'agents/master-mind',
  'project-summarizer': 'agents/project-summarizer',
  'last-look': 'controls/end',
  replan: 'replan',
}

/**
 * Finds the agent by its instructions: a main agent by its prompt, others by the first memory file named; else `null`.
 */
function findAgentName(instructions: string, names: readonly string[]): string | null {
  const main = Object.entries(PROMPTS).find(([, prompt]) => instructions.includes(beginningOf(loadPrompt(prompt))))
  if (main !== undefined) return main[0]
  const file = /\.codemachine\/memory\/\.([a-z0-9-]+)-memory\.md/.exec(instructions)?.[1]
  return names.find(name => name.replace(/-dev$/, '') === file) ?? null
}

/** Enough of a prompt to recognize it, before its first placeholder. */
function beginningOf(prompt: string): string {
  return (prompt.split('{{')[0] ?? '').slice(0, 80)
}
