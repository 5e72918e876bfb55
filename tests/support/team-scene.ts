import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, inflateSync } from 'node:zlib'
import { loadPrompt } from '../../src/base/package.ts'
import {
  functionCall,
  type ModelRequest,
  message,
  reply,
  type Script,
  type ScriptStep,
  shell,
  turnsScript,
} from '../../src/demo/model/reply.ts'
import { codemachine, type Ended } from './codemachine.ts'
import { openRealScene, type RealScene } from './real-scene.ts'
import { type OpenScene, openScene, type Scene, type SceneOptions } from './scene.ts'

/** What a round of a team is for, as a script tells it from what the model is told to be. */
type Role = 'planner' | 'worker' | 'stepwise' | 'tester' | 'reviewer'

/** One conversation: its steps; of a stepwise worker one for each of its messages. */
export type Conversation = readonly ScriptStep[]

/** The nth conversation of a role plays the nth list, and each after it the last. */
type Conversations = readonly Conversation[]

/**
 * What each role plays. A worker's by the id of its step: the nth try plays the nth list. Left out: the planner plans one
 * step, a worker is done, the tester names nothing, the reviewer is content.
 */
export interface TeamScript {
  planner?: Conversations
  worker?: Readonly<Record<number, Conversations>>
  tester?: Conversations
  reviewer?: Conversations
}

/** A scene of `codemachine team`: the work directory of its place is the workspace. */
export type TeamScene<S extends Scene = Scene> = S & {
  /** The directory of the project; the first by name if not said. */
  project(n?: number): string
  /** A file of the project. */
  file(path: string): string
  /** The parsed `runs/*.json`; the first by name if not said. */
  runFile(n?: number): unknown
  /** The lines of the log of all days. */
  log(): string[]
  /** The requests of a role, in their order. */
  asked(role: Role): ModelRequest[]
  /** The conversations of a role: the first request of each. */
  begun(role: Role): ModelRequest[]
  /** Types a secret of the project into the standard input of `codemachine secret set`. */
  setSecret(key: string, value: string, ...more: string[]): Promise<Ended>
  /** Every place where a value or a form of it stands: files below the place, objects of git, requests of the model. */
  findLeaks(value: string): string[]
}

/** Opens one. */
export async function openTeamScene<S extends Scene = Scene>(
  script: TeamScript,
  options: SceneOptions = {},
  open: OpenScene<S> = openScene as OpenScene<S>,
): Promise<TeamScene<S>> {
  const scene = await open(teamScript(script), options)
  const { directory } = scene.place
  const project = (n = 1) => join(directory, 'projects', nthOf(join(directory, 'projects'), n))
  const asked = (role: Role) =>
    scene.model.requests.filter(request => request.kind === 'turn' && roleOf(request) === role)
  return {
    ...scene,
    project,
    file: path => readFileSync(join(project(), path), 'utf8'),
    runFile: (n = 1) => JSON.parse(readFileSync(join(directory, 'runs', nthOf(join(directory, 'runs'), n)), 'utf8')),
    log: () =>
      visible(join(directory, 'logs')).flatMap(name =>
        readFileSync(join(directory, 'logs', name), 'utf8')
          .trimEnd()
          .split('\n'),
      ),
    asked,
    begun: role => asked(role).filter(({ step, attempt }) => step === 0 && attempt === 0),
    setSecret: (key, value, ...more) =>
      codemachine(scene.place, ['secret', 'set', key, '-C', project(), ...more], { input: value }),
    findLeaks: value => leaksIn(scene, value),
  }
}

/** Opens one of the built program and the real codex. */
export function openRealTeamScene(script: TeamScript, options: SceneOptions = {}): Promise<TeamScene<RealScene>> {
  return openTeamScene(script, options, openRealScene)
}

/** As `TeamScene.findLeaks`, of any scene. */
export function leaksIn({ place, model }: Pick<Scene, 'place' | 'model'>, value: string): string[] {
  const forms = formsOf(value)
  const found = filesBelow(place.root).flatMap(path => {
    // Where it lies on purpose.
    if (/\/secrets\/[A-Z0-9_]+\.json$/.test(path)) return []
    return formsIn(readFileSync(path), forms).map(form => `${path}: ${form}`)
  })
  const requests = model.requests.flatMap(({ body }, n) =>
    formsIn(Buffer.from(JSON.stringify(body)), forms).map(form => `request ${n}: ${form}`),
  )
  return [...found, ...requests]
}

function visible(folder: string): string[] {
  return readdirSync(folder)
    .filter(name => !name.startsWith('.'))
    .sort()
}

function nthOf(folder: string, n: number): string {
  const name = visible(folder)[n - 1]
  if (name === undefined) throw new Error(`${folder} has no entry ${n}`)
  return name
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
}

/** A value as others write it, by name. Written here anew: what takes it out of texts is not to say what is looked for. */
function formsOf(value: string): [name: string, form: Buffer][] {
  const bytes = Buffer.from(value)
  const aligned = [0, 1, 2].map(before => {
    const text = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '')
    // The characters that are not of the value alone.
    return text.slice(before === 0 ? 0 : before + 1, (bytes.length + before) % 3 === 0 ? undefined : -1)
  })
  const hex = bytes.toString('hex')
  const percent = hex.replace(/../g, '%$&')
  const forms: Record<string, string> = {
    plain: value,
    'base64 0': aligned[0] ?? '',
    'base64 1': aligned[1] ?? '',
    'base64 2': aligned[2] ?? '',
    hex,
    'hex in capitals': hex.toUpperCase(),
    URL: encodeURIComponent(value),
    percent,
    'percent in capitals': percent.toUpperCase(),
    JSON: JSON.stringify(value).slice(1, -1),
  }
  return Object.entries(forms).flatMap(([name, form]): [string, Buffer][] => [
    [name, Buffer.from(form)],
    [`${name} for URLs`, Buffer.from(form.replaceAll('+', '-').replaceAll('/', '_'))],
  ])
}

/** The forms that stand in some bytes, packed ones too, and over line ends. */
function formsIn(bytes: Buffer, forms: readonly [string, Buffer][]): string[] {
  const texts = [bytes, unpacked(bytes)].filter(each => each !== null)
  const joined = texts.map(each => Buffer.from(each.toString('latin1').replace(/\\n|[\r\n]/g, ''), 'latin1'))
  return forms.filter(([, form]) => [...texts, ...joined].some(text => text.includes(form))).map(([name]) => name)
}

/** What git and gzip have packed; null if it is neither. */
function unpacked(bytes: Buffer): Buffer | null {
  try {
    if (bytes[0] === 0x78) return inflateSync(bytes)
    return bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : null
  } catch {
    return null
  }
}

const NOTHING_SAID: Record<Role, Conversation> = {
  planner: [plans('Do it.')],
  worker: [works()],
  stepwise: [commands(null)],
  tester: [tests()],
  reviewer: [reviews()],
}

function teamScript(script: TeamScript): Script {
  const seen = new Map<string, string[]>()
  return turnsScript(request => {
    const role = roleOf(request)
    const step = Number(
      /\bstep (\d+)\b/.exec(request.userTexts.find(text => /^Do step \d/m.test(text)) ?? '')?.[1] ?? 0,
    )
    const works = role === 'worker' || role === 'stepwise'
    const name = works ? `worker ${step}` : role
    const threads = seen.get(name) ?? []
    if (!threads.includes(request.thread)) threads.push(request.thread)
    seen.set(name, threads)
    const nth = threads.indexOf(request.thread)
    const played = works ? script.worker?.[step] : script[role]
    const conversation = played?.[nth] ?? played?.at(-1) ?? NOTHING_SAID[role]
    return conversation[request.step]
  })
}

const ROLES: readonly Role[] = ['planner', 'stepwise', 'worker', 'tester', 'reviewer']

/** What a request is for: by who the model is told to be. */
function roleOf({ developerTexts }: Pick<ModelRequest, 'developerTexts'>): Role {
  const told = developerTexts.join('\n')
  return ROLES.find(role => told.includes(endOfFirstSentence(role))) ?? 'worker'
}

/** The words of a prompt that come after the directory, up to the end of the paragraph. */
function endOfFirstSentence(role: Role): string {
  const [paragraph = ''] = loadPrompt(`team/${role}`).split('\n')
  return paragraph.split('}}`')[1] ?? paragraph
}

/** A step that answers with this value as JSON, which ends the turn. */
function answers(value: unknown): ScriptStep {
  return reply(message(JSON.stringify(value), { phase: 'final_answer', chunkSize: 4_000 }))
}

/** A step of a plan as a script names it: its description, or more. */
export type Planned = string | { description: string; network?: boolean; needs?: readonly number[] }

/** The answer of a planner: these steps, with ids from 1. */
export function plans(...steps: readonly Planned[]): ScriptStep {
  return answers({
    goal: 'The goal, restated.',
    steps: steps.map((step, at) => ({
      id: at + 1,
      network: false,
      needs: [],
      ...(typeof step === 'string' ? { description: step } : step),
    })),
  })
}

/** The last answer of a worker. */
export function works(more: { done?: boolean; thoughts?: string; checks?: readonly string[] } = {}): ScriptStep {
  return answers({ done: true, thoughts: 'It is done.', checks: [], ...more })
}

/** A message of a stepwise worker: the next command, or null: it is done. */
export function commands(
  command: string | null,
  more: { secrets?: readonly string[]; thoughts?: string; done?: boolean; ask_human?: object | null } = {},
): ScriptStep {
  return answers({
    command: command ?? '',
    secrets: [],
    done: command === null,
    thoughts: command === null ? 'It is done.' : 'Next.',
    ask_human: null,
    ...more,
  })
}

/** A worker that runs these in codex's own shell, and is done. */
export const runs = (...lines: readonly string[]): Conversation => [
  ...lines.map(line => reply(shell(line, { login: false }))),
  works(),
]

/** A call of `run_shell`. */
export const runShell = (command: string, ...secrets: readonly string[]): ScriptStep =>
  reply(functionCall('run_shell', { command, ...(secrets.length > 0 && { secrets }) }))

/** A call of `ask_human`. */
export const askHuman = (key: string, more: { question?: string; reason?: string } = {}): ScriptStep =>
  reply(functionCall('ask_human', { question: `What is ${key}?`, key_name: key, storage: 'env', ...more }))

/** The answer of a tester: these commands end by themselves and need no network. */
export function tests(...lines: readonly string[]): ScriptStep {
  return answers({
    commands: lines.map(command => ({
      for: `runs ${command}`,
      command,
      ends_by_itself: true,
      needs_network: false,
    })),
  })
}

/** The answer of a reviewer. */
export function reviews(
  ...issues: readonly { description: string; severity: 'low' | 'medium' | 'high'; type?: string }[]
): ScriptStep {
  return answers({
    overall_assessment: issues.length === 0 ? 'It is good.' : 'Something is wrong.',
    issues: issues.map(issue => ({ type: 'bug', ...issue })),
    suggestions: ['Add more tests.'],
  })
}

/** Three steps to a start script that codemachine runs. */
export const GREETING: Required<Pick<TeamScript, 'planner' | 'worker' | 'tester' | 'reviewer'>> = {
  planner: [[plans('Write greet.sh.', { description: 'Write start.sh.', needs: [1] }, 'Write a README.')]],
  worker: {
    1: [runs(`printf 'echo "Hello, $1!"\\n' > greet.sh`, 'sh greet.sh you')],
    2: [runs(`printf '#!/bin/sh\\nexec sh greet.sh world\\n' > start.sh; chmod +x start.sh`)],
    3: [runs(`echo 'Type ./start.sh.' > README.md`)],
  },
  tester: [[tests('./start.sh')]],
  reviewer: [[reviews()]],
}

/** The same for workers that work by messages alone. */
export const GREETING_STEPWISE: typeof GREETING = {
  ...GREETING,
  worker: {
    1: [[commands(`printf 'echo "Hello, $1!"\\n' > greet.sh`), commands('sh greet.sh you'), commands(null)]],
    2: [[commands(`printf '#!/bin/sh\\nexec sh greet.sh world\\n' > start.sh; chmod +x start.sh`), commands(null)]],
    3: [[commands(`echo 'Type ./start.sh.' > README.md`), commands(null)]],
  },
}
