import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { loadPrompt } from '../../src/base/package.ts'
import {
  type ModelRequest,
  message,
  reply,
  type Script,
  type ScriptStep,
  shell,
  turnsScript,
} from '../../src/demo/model/reply.ts'
import type { Plan } from '../../src/modes/change/plan.ts'
import type { TaskSpec } from '../../src/modes/change/tasks.ts'
import { openRealScene, type RealScene, type RealSceneOptions } from './real-scene.ts'
import { says } from './rounds.ts'
import { openPlayedScene, type Scene, type SceneOptions } from './scene.ts'
import { type ScriptedModel, startScriptedModel } from './scripted-model.ts'

/** What a round of a change is for, as a script tells it from what the model is asked. */
type Role = 'planner' | 'decomposer' | 'executor' | 'fixer' | 'summary'

/** One conversation: its steps; or what says the step of a request from that itself, and from how many of its role there were before, counted from 0. */
type Conversation = readonly ScriptStep[]
type RoleScript = readonly Conversation[] | ((request: ModelRequest, nth: number) => Conversation | undefined)

/** What each role plays: the nth conversation the nth list, and the last list again. Left out: it says "Done.". */
export type ChangeScript = Partial<Record<Role, RoleScript>>

/** A scene of `codemachine change`: what codex is configured with is the remote model, `[providers.local]` the local one. */
export interface ChangeScene extends Scene {
  /** The server of `[providers.local]`, whose model is `qwen`. Where the rounds play in this process it answers what models it has, and nothing else. */
  local: ScriptedModel
  /** The requests to both that were of this role, with where they were sent, in their order at each. */
  asked(role: Role): (ModelRequest & { at: 'remote' | 'local' })[]
  /** The conversations of a role: the first request of each. */
  begun(role: Role): (ModelRequest & { at: 'remote' | 'local' })[]
}

export interface ChangeSceneOptions extends Omit<SceneOptions, 'person'> {
  /** Lines of the table `[providers.local]` beside `base_url` and `model`. */
  table?: string
  /** Whether the settings name the local provider as executor; left out: they do. */
  executor?: boolean
  /** More of the person's settings; told where the local server is. */
  settings?: (url: string) => string
  /** The files of the project, beside `README.md`. */
  files?: Readonly<Record<string, string>>
  /** What the local model plays where that is not the same. */
  localScript?: ChangeScript
}

/** Of one with the real codex. */
type RealChangeSceneOptions = ChangeSceneOptions & Omit<RealSceneOptions, 'person'>

/** Opens one in this process. */
export async function openChangeScene(script: ChangeScript, options: ChangeSceneOptions = {}): Promise<ChangeScene> {
  const played = { remote: roleScript(script), local: roleScript(options.localScript ?? script) }
  return await withLocal(played.local, options, async others => {
    const scene = await openPlayedScene(
      request => (request.provider === LOCAL ? played.local(request) : played.remote(request)),
      others,
    )
    const { requests } = scene.model
    const at = (isLocal: boolean) => requests.filter(({ provider }) => (provider === LOCAL) === isLocal)
    return { scene, remote: () => at(false), local: () => at(true) }
  })
}

/** Opens one with the built program and the real codex. */
export async function openRealChangeScene(
  script: ChangeScript,
  options: RealChangeSceneOptions = {},
): Promise<ChangeScene & RealScene> {
  return await withLocal(roleScript(options.localScript ?? script), options, async (others, local) => {
    const scene = await openRealScene(roleScript(script), others)
    return { scene, remote: () => scene.model.requests, local: () => local.requests }
  })
}

const LOCAL = 'local'

/** What a scene has been asked, and the scene. */
interface Opened<S extends Scene> {
  scene: S
  remote(): readonly ModelRequest[]
  local(): readonly ModelRequest[]
}

async function withLocal<S extends Scene, O extends ChangeSceneOptions>(
  script: Script,
  { table = '', executor = true, settings = () => '', files = {}, localScript: _, ...others }: O,
  open: (
    options: Omit<O, keyof Omit<ChangeSceneOptions, keyof SceneOptions>> & { person: string },
    local: ScriptedModel,
  ) => Promise<Opened<S>>,
): Promise<ChangeScene & S> {
  const local = await startScriptedModel({ script, models: ['qwen'], functionsOnly: true })
  const change = executor ? '[change]\nexecutor = "local"\n' : ''
  const provider = `[providers.local]\nbase_url = "${local.url}"\nmodel = "qwen"\n${table}\n`
  const opened = await open({ ...others, person: `${settings(local.url)}\n${change}${provider}` }, local)
  const { scene } = opened
  for (const [path, text] of Object.entries(files)) {
    const file = join(scene.place.directory, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text)
  }
  const asked = (role: Role) => [
    ...opened
      .remote()
      .filter(request => roleOf(request) === role)
      .map(each => ({ ...each, at: 'remote' as const })),
    ...opened
      .local()
      .filter(request => roleOf(request) === role)
      .map(each => ({ ...each, at: 'local' as const })),
  ]
  return {
    ...scene,
    local,
    asked,
    begun: role => asked(role).filter(({ step, attempt }) => step === 0 && attempt === 0),
    async [Symbol.asyncDispose]() {
      await scene[Symbol.asyncDispose]()
      await local[Symbol.asyncDispose]()
    },
  }
}

function roleScript(script: ChangeScript): Script {
  const seen = new Map<Role, string[]>()
  return turnsScript(request => {
    const role = roleOf(request)
    const threads = seen.get(role) ?? []
    if (!threads.includes(request.thread)) threads.push(request.thread)
    seen.set(role, threads)
    const nth = threads.indexOf(request.thread)
    const played = script[role] ?? [[reply(message('Done.'))]]
    const steps = typeof played === 'function' ? played(request, nth) : (played[nth] ?? played.at(-1))
    return steps?.[request.step]
  })
}

/** What a request is for: by the shape of the answer that is asked for, and where there is none by who the model is told to be. */
function roleOf({ body, developerTexts }: Pick<ModelRequest, 'body' | 'developerTexts'>): Role {
  const format = Object(Object(body.text).format)
  const fields = Object.keys(Object(Object(format.schema).properties))
  if (fields.includes('verification')) return 'planner'
  if (fields.includes('tasks')) return 'decomposer'
  const told = developerTexts.join('\n')
  if (told.includes(beginningOf('summary'))) return 'summary'
  return told.includes(beginningOf('fixer')) ? 'fixer' : 'executor'
}

/** What the developer instructions of a role begin with, before anything of them is filled in. */
function beginningOf(role: 'summary' | 'fixer'): string {
  return loadPrompt(`change/${role}`).split(',')[0] ?? role
}

/** A step that answers with this value as JSON, which ends the turn. */
function answers(value: unknown): ScriptStep {
  return reply(message(JSON.stringify(value), { phase: 'final_answer', chunkSize: 4_000 }))
}

/** The answer of an info task or an action: these outputs. */
export const outputs = (values: Readonly<Record<string, string>>): ScriptStep => answers({ outputs: values })

/** The answer of a planner: a plan, as it differs from one that writes `limit.txt`. */
export function plans(more: Partial<Plan> = {}): ScriptStep {
  return answers({
    description: 'Write the limit into limit.txt.',
    files: [{ path: 'limit.txt', change: 'It says how much is allowed.' }],
    risks: [],
    verification: [{ run: 'sh check.sh', why: 'It looks at the limit.' }],
    questions: [],
    ...more,
  })
}

/** The answer of a decomposer: these tasks, in the strict shape. */
export function cuts(...tasks: readonly TaskSpec[]): ScriptStep {
  return answers({
    tasks: tasks.map(({ inputs, outputs: promised, ...task }) => ({
      ...task,
      inputs: Object.entries(inputs).map(([name, from]) => ({ name, from })),
      outputs: Object.entries(promised).map(([name, what]) => ({ name, what })),
    })),
  })
}

/** The conversation of an executor that writes this limit. */
export const writes = (limit: string): ScriptStep[] => [
  reply(shell(`echo ${limit} > limit.txt`)),
  outputs({ written: `limit.txt says ${limit}` }),
]

const task = (type: TaskSpec['type'], id: string, more: Partial<TaskSpec>): TaskSpec => ({
  id,
  type,
  description: `Do ${id}.`,
  inputs: {},
  outputs: {},
  files: [],
  run: null,
  ...more,
})

/** A task of each type. */
const gather = (id: string, more: Partial<TaskSpec> = {}) => task('INFO_GATHERING', id, more)
export const act = (id: string, more: Partial<TaskSpec> = {}) => task('ACTION', id, more)
export const verify = (id: string, run: string, more: Partial<TaskSpec> = {}) =>
  task('VERIFICATION', id, { run, ...more })

/** A project with a test: `sh check.sh` passes once limit.txt says 10. */
export const PROJECT = { 'check.sh': 'grep -q 10 limit.txt\n' }

/** Three tasks that change it: what the limit is, write it, look whether it is there. */
export const TASKS = [
  gather('T1', { description: 'Find out how much is allowed.', outputs: { limit: 'how much is allowed' } }),
  act('T2', {
    description: 'Write the limit.',
    inputs: { limit: 'T1.limit' },
    outputs: { written: 'what was written' },
    files: ['limit.txt'],
  }),
  verify('T3', 'sh check.sh'),
]

/** A change as the models play it where nothing else is said: the limit is looked up and written, and `sh check.sh` passes. */
export const THREE_TASKS: ChangeScript = {
  planner: [[plans()]],
  decomposer: [[cuts(...TASKS)]],
  executor: [[outputs({ limit: 'It is 10.' })], writes('10')],
  summary: [[says('The limit is 10 now.')]],
}

/** The same in two tasks, of which a model does the first alone: nothing is looked up. */
export const TWO_TASKS: ChangeScript = {
  ...THREE_TASKS,
  decomposer: [[cuts(...TASKS.slice(1).map(each => ({ ...each, inputs: {} })))]],
  executor: [writes('10')],
}
