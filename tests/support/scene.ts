import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import type { EngineKinds } from '../../src/core/engine.ts'
import type { Recorded, RecordedOf } from '../../src/core/events/events.ts'
import { type ModelRequest, roundsScript, type Script, type ScriptStep } from '../../src/demo/model/reply.ts'
import { OWN_ENGINES } from '../../src/engines/registry.ts'
import type { CommandOptions, Ended, Running } from './codemachine.ts'
import { type InProcess, type InProcessOptions, startInProcess } from './in-process.ts'
import { makePlace, type PlaceOptions, type TestPlace } from './place.ts'
import { endProcessesOf } from './processes.ts'
import { type PlayedRequest, type ScriptedEngineOptions, scriptedEngine } from './scripted-engine.ts'
import type { UsageWindows } from './scripted-model.ts'

/**
 * A throw-away machine, what a person does there, and what they find. Where nothing else is said, the command line runs in
 * this process and a scripted engine plays the rounds; `openRealScene` opens one with the built program and the real codex.
 */
export interface Scene extends Found, AsyncDisposable {
  /** What the rounds have asked of their model. */
  model: { readonly requests: readonly ModelRequest[] }
  place: TestPlace
  /** On which rounds are run in this process. */
  engines: EngineKinds
  run(...args: string[]): Promise<Ended>
  start(...args: string[]): Running
  /** The same with what is said beside it. */
  command(args: readonly string[], options?: CommandOptions): Running
  /** The same in this process, on the test's clock; ended with the scene. */
  startInProcess(args: readonly string[], options: Omit<InProcessOptions, 'engines'>): InProcess
}

/** What a person finds in a place after sessions. */
export interface Found {
  /** The folder of the records of the work directory. */
  records(): string
  /** The text of a file of a session in the records; the first session if not said. */
  recorded(file: string, session?: number): string
  /** Whether there is such a file yet. */
  hasRecorded(file: string, session?: number): boolean
  /** The text of a memory file in the work directory. */
  memory(file: string, session?: number): string
  /** What round n, counted from 1, was told: the last user message of its first request. */
  input(round: number): string
}

export interface SceneOptions extends PlaceOptions {
  /** What the account has used of its limits. */
  account?: () => UsageWindows | null
  /** The person's own settings of codemachine, as TOML. */
  person?: string
}

/** How tests open a scene in which the model plays these rounds, one conversation each, or a script. */
export type OpenScene<S extends Scene = Scene, O extends SceneOptions = SceneOptions> = (
  rounds: readonly (readonly ScriptStep[])[] | Script,
  options?: O,
) => Promise<S>

/** Opens a scene in this process: for what a command does with a session, and not for what codex does in it. Gates run in codex's sandbox, as ever. */
export const openScene: OpenScene = async (rounds, options = {}) => {
  const script = typeof rounds === 'function' ? rounds : roundsScript(rounds)
  return await openPlayedScene(script, options)
}

/** A scene in this process. */
interface PlayedScene extends Scene {
  model: { readonly requests: readonly PlayedRequest[] }
}

/** The same with a script that may go by which provider is asked; what was asked says which, too. */
export async function openPlayedScene(
  script: ScriptedEngineOptions['script'],
  options: SceneOptions = {},
): Promise<PlayedScene> {
  const { account } = options
  const { kind, requests } = scriptedEngine({ script, ...(account ? { account } : {}) })
  const place = await makePlace('', options)
  if (options.person !== undefined) await writePersonSettings(place, options.person)
  return { ...sceneIn(place, new Map([...OWN_ENGINES, ['codex', kind]]), requests), model: { requests } }
}

function sceneIn(place: TestPlace, engines: EngineKinds, requests: readonly ModelRequest[]): Scene {
  const started: InProcess[] = []
  const begin = (args: readonly string[], options: InProcessOptions) => {
    const run = startInProcess(place, args, { ...options, engines })
    started.push(run)
    return run
  }
  return {
    model: { requests },
    place,
    engines,
    run: (...args) => begin(args, { clock: systemClock }).ended,
    start: (...args) => begin(args, { clock: systemClock }),
    command: (args, options) => begin(args, { clock: systemClock, ...options }),
    startInProcess: begin,
    ...findIn(place, requests),
    async [Symbol.asyncDispose]() {
      await Promise.all(started.map(each => each[Symbol.asyncDispose]()))
      endProcessesOf(place)
      await place[Symbol.asyncDispose]()
    },
  }
}

/** What is found in a place. */
export function findIn(place: TestPlace, requests: readonly ModelRequest[]): Found {
  const records = () => only(join(place.home, '.codemachine', 'state'))
  const recordedPath = (file: string, session = 1) => join(nth(join(records(), 'sessions'), session), file)
  const nth = (folder: string, n: number) => join(folder, readdirSync(folder).sort(byNumber)[n - 1] ?? `session ${n}`)
  return {
    records,
    recorded: (file, session) => readFileSync(recordedPath(file, session), 'utf8'),
    hasRecorded: (file, session) => existsSync(recordedPath(file, session)),
    memory: (file, session = 1) =>
      readFileSync(join(nth(join(place.directory, '.codemachine', 'projects'), session), file), 'utf8'),
    input(round) {
      const request = requests.find(({ conversation }) => conversation === round - 1)
      return request?.userTexts.at(-1) ?? ''
    },
  }
}

/** Writes the person's own settings of codemachine, as TOML. */
export async function writePersonSettings(place: TestPlace, text: string): Promise<void> {
  const folder = join(place.home, '.config', 'codemachine')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'config.toml'), text)
}

/** The events of one type, in their order. */
export function eventsOf<T extends Recorded['type']>(events: readonly Recorded[], type: T): RecordedOf<T>[] {
  return events.flatMap(apart).filter((event): event is RecordedOf<T> => event.type === type)
}

/** An event, or each of the warnings that are told in one. */
function apart(event: Recorded): Recorded[] {
  if (event.type !== 'warning' || event.more === undefined) return [event]
  const { more, ...first } = event
  return [first, ...more.map(message => ({ ...first, message }))]
}

function only(folder: string): string {
  const [name, ...others] = readdirSync(folder)
  if (name === undefined || others.length > 0) throw new Error(`${folder} holds ${others.length + 1} folders`)
  return join(folder, name)
}

function byNumber(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true })
}
