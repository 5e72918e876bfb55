import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import {
  type BuildPlace,
  type BuildStep,
  buildPlaceOf,
  openOf,
  planFile,
  planText,
  projectPrompts,
  specificationText,
} from './build-plan.ts'
import { type AgentPart, agentsScript, orchestration, taskedAgents, workOn } from './build-rounds.ts'
import { booksText } from './build-sources.ts'
import { reply, type Script, type ScriptStep } from './model/reply.ts'
import { addFile, claimDone, conclude, createRepository, patch, say, shell, think } from './words.ts'

/**
 * Plays the build of a small program by four agents: eight tasks, three of them at once, one of which falls short of its
 * criterion at first. `parks`: one more can never be done, and is tried five times. `watchable` lets text flow at
 * reading speed. A round that was broken off is played again from what the plan says.
 */
export function buildScript(pace: 'instant' | 'watchable', { parks }: { parks: boolean }): Script {
  const deltaMs = pace === 'watchable' ? 40 : 0
  const part = (stepsFor: (place: BuildPlace) => readonly BuildStep[]): AgentPart => {
    const begun = new Map<number, readonly ScriptStep[]>()
    return (_, request) => {
      const known = begun.get(request.conversation)
      if (known !== undefined) return known
      const steps = stepsFor(buildPlaceOf(request)).map(step => scriptStep(step, deltaMs))
      begun.set(request.conversation, steps)
      return steps
    }
  }
  return agentsScript({
    'agents-builder': part(() => teamBuilding(parks)),
    'master-mind': part(place => orchestration(parks, place)),
    'project-summarizer': part(() => summary),
    'last-look': part(() => lastLook),
    replan: part(() => replanning),
    ...Object.fromEntries(taskedAgents.map(name => [name, part(({ asked }) => workOn(asked))])),
  })
}

function scriptStep(step: BuildStep, deltaMs: number): ScriptStep {
  return request => ({ ...reply(...step(buildPlaceOf(request))), deltaMs })
}

/**
 * Makes the git repository of the build in `directory`, which has to be empty or missing: a list of books in one commit,
 * and the specification where `codemachine start` looks for it. `env` is what git runs with.
 */
export async function createBuildRepository(
  directory: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  await createRepository(directory, { files: { 'books.json': booksText }, message: 'Begin with a list' }, env)
  const specification = join(directory, '.codemachine', 'inputs', 'specifications.md')
  await mkdir(dirname(specification), { recursive: true })
  await writeFile(specification, specificationText)
}

/** What project-summarizer says, whenever master-mind has stopped. */
const summary: readonly BuildStep[] = [
  () => [shell(`cat ${planFile}; git log --oneline; git status --short`)],
  place => [conclude(summaryOf(place))],
]

function summaryOf(place: BuildPlace): string {
  const open = place.plan.filter(({ done }) => !done)
  const [first] = open
  if (first === undefined)
    return 'All eight tasks are done, and the tests pass. To use it: node bin/reading-list.js books.json index.html'
  if (first.parked !== undefined)
    return 'Seven of eight tasks are done, and the tests pass. T7, the validator, needs somebody with a network. To use what there is: node bin/reading-list.js books.json index.html'
  if (openOf(place, 'T1', 'T2', 'T3', 'T4', 'T5', 'T6').length > 0)
    return `${place.plan.length - open.length} of ${place.plan.length} tasks are done. Next: ${first.id} ${first.name}.`
  return open.length === 1 && first.id === 'T7'
    ? 'Everything but T7 is done. T7 wants an answer of validator.w3.org, and there is no network here. Next: T7.'
    : `T1 to T6 are done: reading-list reads books.json and makes a page. T4 took two tries, as titles were put into the page as HTML at first. Next: ${open.map(({ id }) => id).join(' and ')}.`
}

/** A change of plan: what the person says goes into the task that is worked on last. */
const replanning: readonly BuildStep[] = [
  place => [say('I read the plan.'), shell(`cat ${place.main} ${planFile}`)],
  place => {
    const last = place.plan.findLast(({ done }) => !done)
    if (last === undefined) return [conclude('Every task is done, so a script like me can change nothing any more.')]
    const wish = place.asked.replace(/^Change the plan:\s*/, '').trim()
    const plan = place.plan.map(task =>
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

/** The look at the whole, which changes nothing and may claim that all is done. */
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

/** The team builder's round: prompts of the project's own, and the plan. */
function teamBuilding(parks: boolean): readonly BuildStep[] {
  return [
    () => [
      say('I read what is wanted, and who there is.'),
      shell('cat .codemachine/inputs/specifications.md .codemachine/agents/agents-config.json; git log --oneline; ls'),
    ],
    () => [
      think(
        '**Who is needed?**\n\nThe specification is short: a list, a page, a command. Four of the agents are enough, each with a few sentences about this project.',
      ),
      patch(...Object.entries(projectPrompts).map(([name, text]) => addFile(`.codemachine/agents/${name}.md`, text))),
    ],
    () => [
      say('Now the plan: eight tasks, each with a check that can be run.'),
      shell(
        `mkdir -p .codemachine/plan && cat > ${planFile} <<'EOF'\n${planText(parks)}EOF\nnode -p "JSON.parse(fs.readFileSync('${planFile}')).tasks.length + ' tasks'"`,
      ),
    ],
    () => [conclude('Four agents have prompts for this project, and plan/tasks.json has eight tasks in four phases.')],
  ]
}
