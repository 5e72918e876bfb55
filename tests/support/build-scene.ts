import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Recorded } from '../../src/core/events/events.ts'
import { type AgentPart, agentsScript } from '../../src/demo/agents-script.ts'
import type { ModelRequest, Script, ScriptStep } from '../../src/demo/model/reply.ts'
import { functionCall, reply, shell } from '../../src/demo/model/reply.ts'
import { claimDone, says } from './rounds.ts'
import { eventsOf, type OpenScene, openScene, type Scene, type SceneOptions } from './scene.ts'

/** What each agent plays. */
export type Parts = Readonly<Record<string, AgentPart>>

/** The person's flags of a build that nobody watches. */
export const UNATTENDED = ['--yes', '--json', '--no-keep-awake']

/** Opens a scene in which the model plays a script; with a specification, if there is one to write. */
export async function openBuild<S extends Scene = Scene>(
  script: Script,
  specification: string | null = SPECIFICATION,
  { open = openScene as OpenScene<S>, ...options }: SceneOptions & { open?: OpenScene<S> | undefined } = {},
): Promise<S> {
  const scene = await open(script, options)
  if (specification !== null) await writeAt(scene, '.codemachine/inputs/specifications.md', specification)
  return scene
}

/**
 * Opens the scene of a build of two tasks, each for an agent of its own that makes a part. Every round does what the
 * files say is next, so that the outcome cannot depend on where it was cut off; `instead` are parts played otherwise.
 */
export async function openSmallBuild<S extends Scene = Scene>(
  instead: (scene: () => S) => Parts = () => ({}),
  open?: OpenScene<S>,
): Promise<S> {
  let opened: S | null = null
  const scene = () => {
    if (opened === null) throw new Error('the scene is not open yet')
    return opened
  }
  opened = await openBuild(agentsScript({ ...smallBuild(scene), ...instead(scene) }), SPECIFICATION, { open })
  return opened
}

/** The plan of the small build as its files stand, written as a whole; to be run in a shell. */
export const WRITE_PLAN = `
made() { if [ -e $1/part.txt ]; then echo true; else echo false; fi; }
mkdir -p .codemachine/plan
cat > .codemachine/plan/.new <<END
{ "tasks": [
  { "id": "T1", "name": "Make the back", "details": "A file in a folder.", "acceptanceCriteria": "back/part.txt", "phase": "Building", "done": $(made back), "subtasks": [] },
  { "id": "T2", "name": "Make the front", "details": "A file in a folder.", "acceptanceCriteria": "front/part.txt", "phase": "Testing", "done": $(made front), "subtasks": [] }
] }
END
mv .codemachine/plan/.new .codemachine/plan/tasks.json`

/** A call of the tool that gives a task to an agent. */
export function runAgent(agent: string, task: string, paths?: readonly string[]) {
  return functionCall('run_agent', paths === undefined ? { agent, task } : { agent, task, paths })
}

/** A part that plays the same in every conversation. */
export function always(...steps: readonly ScriptStep[]): () => readonly ScriptStep[] {
  return () => steps
}

/** A part of a build that has its own steps in each conversation; the last ones stay. */
export function inTurn(...conversations: readonly [readonly ScriptStep[], ...(readonly ScriptStep[])[]]): AgentPart {
  return nth => conversations[Math.min(nth, conversations.length - 1)] ?? conversations[0]
}

/** The text of a file of the work directory; null if there is none. */
export function readAt(scene: Scene, path: string): string | null {
  const file = join(scene.place.directory, path)
  return existsSync(file) ? readFileSync(file, 'utf8') : null
}

/** Writes a file of the work directory. */
export async function writeAt(scene: Scene, path: string, text: string): Promise<void> {
  const file = join(scene.place.directory, path)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text)
}

/** The plan as it is on the disk. */
export function planOf(scene: Scene): { id: string; done: boolean; parked?: string }[] {
  return JSON.parse(readAt(scene, '.codemachine/plan/tasks.json') ?? '{}').tasks
}

/** What codemachine made of the tasks, in its order. */
export function verdictsOf(events: readonly Recorded[]): string[] {
  return eventsOf(events, 'task-judged').map(({ task, verdict }) => `${task} ${verdict}`)
}

/** The agents that were given tasks, each with how its work ended. */
export function workOf(events: readonly Recorded[]): string[] {
  const ends = new Map(eventsOf(events, 'agent-ended').map(({ instance, status }) => [instance, status]))
  return eventsOf(events, 'agent-started').map(
    ({ agent, tasks, instance }) => `${agent} ${tasks.join()} ${ends.get(instance) ?? 'at work'}`,
  )
}

/** The most agents that were at work at once. */
export function mostAtOnce(events: readonly Recorded[]): number {
  let atWork = 0
  let most = 0
  for (const { type } of events) {
    if (type === 'agent-started') atWork += 1
    if (type === 'agent-ended') atWork -= 1
    most = Math.max(most, atWork)
  }
  return most
}

const SPECIFICATION = `# Two parts

A folder \`back\` with a file \`part.txt\`, and a folder \`front\` with another one. Each says what it is in one line of text.
`

/** What each agent plays in the small build. */
export function smallBuild(scene: () => Scene) {
  const isMade = (part: string) => readAt(scene(), `${part}/part.txt`) !== null
  // Of an agent that was cut off nobody knows whether it had finished.
  const isRefused = ({ userTexts }: ModelRequest, task: string) =>
    userTexts.some(text => text.includes('does not accept that') && text.includes(`${task} (`))
  const left = (request: ModelRequest) => [
    ...(isMade('back') && !isRefused(request, 'T1') ? [] : [runAgent('backend-dev', 'T1: make the back', ['back'])]),
    ...(isMade('front') && !isRefused(request, 'T2')
      ? []
      : [runAgent('frontend-dev', 'T2: make the front', ['front'])]),
  ]
  return {
    'agents-builder': always(reply(shell(WRITE_PLAN)), says('There is a plan.')),
    'master-mind': always(
      request => {
        const calls = left(request)
        return calls.length === 0 ? reply(shell('true')) : reply(...calls)
      },
      reply(shell(WRITE_PLAN)),
      says('That was all.'),
    ),
    'backend-dev': always(makePart('back'), says('The back is made.')),
    'frontend-dev': always(makePart('front'), says('The front is made.')),
    'project-summarizer': always(says('Both parts are made, or will be.')),
    'last-look': always(reply(shell(claimDone)), says('It is all there.')),
  } satisfies Parts
}

/** Whole or not there, wherever it is cut off. */
export function makePart(part: string): ScriptStep {
  return reply(
    shell(`mkdir -p ${part} && echo 'This is the ${part}.' > ${part}/.new && mv ${part}/.new ${part}/part.txt`),
  )
}
