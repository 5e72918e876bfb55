import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../src/base/clock.ts'
import type { Recorded, RecordedOf } from '../../src/core/events/events.ts'
import type { UsageWindows } from '../../src/demo/model/reply.ts'
import { roundsScript, type Script, type ScriptStep } from '../../src/demo/model/reply.ts'
import { chatGptLogin, type ScriptedModel, startScriptedModel } from '../../src/demo/model/scripted-model.ts'
import { codemachine, type Ended, type RunningCodemachine, startCodemachine } from './codemachine.ts'
import { type InProcess, type InProcessOptions, startInProcess } from './in-process.ts'
import { makePlace, type PlaceOptions, type TestPlace } from './place.ts'
import { endProcessesOf } from './processes.ts'

/** A throw-away machine whose codex talks to a scripted model, and what a person does and finds there. */
export interface Scene extends AsyncDisposable {
  model: ScriptedModel
  place: TestPlace
  run(...args: string[]): Promise<Ended>
  start(...args: string[]): RunningCodemachine
  /** The same door, in this process and on the test's clock; ended with the scene. */
  startInProcess(args: readonly string[], options: InProcessOptions): InProcess
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
  /** Settings of the scripted provider, such as its retries. */
  provider?: Record<string, string | number | boolean>
  /** What a sub-agent plays. */
  subAgent?: ScriptStep
  /** What the account has used of its limits; codex is then logged in with ChatGPT. */
  account?: () => UsageWindows | null
  /** More config.toml, after the provider's table. */
  config?: string
  /** The person's own settings of codemachine, as TOML. */
  person?: string
  /** Whose pauses are those between the pieces of what the model says. */
  modelClock?: Clock
}

/** Fails fast where codex would try again for half a minute. */
export const IMPATIENT = { request_max_retries: 0, stream_max_retries: 0 }

/** Opens a scene in which the model plays these rounds, one conversation each, or a script. */
export async function openScene(
  rounds: readonly (readonly ScriptStep[])[] | Script,
  options: SceneOptions = {},
): Promise<Scene> {
  const { subAgent, account, modelClock } = options
  const model = await startScriptedModel({
    script: typeof rounds === 'function' ? rounds : roundsScript(rounds, subAgent ? { subAgent } : {}),
    ...(account ? { account } : {}),
    ...(modelClock ? { clock: modelClock } : {}),
  })
  const config = `${model.codexConfig('scripted', options.provider)}\n${options.config ?? ''}`
  const place = await makePlace(config, options)
  if (options.person !== undefined) {
    const folder = join(place.home, '.config', 'codemachine')
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'config.toml'), options.person)
  }
  if (account) await writeFile(join(place.codexHome, 'auth.json'), chatGptLogin(Date.now()), { mode: 0o600 })
  const inProcess: InProcess[] = []
  const records = () => only(join(place.home, '.codemachine', 'state'))
  const recordedPath = (file: string, session = 1) => join(nth(join(records(), 'sessions'), session), file)
  const nth = (folder: string, n: number) => join(folder, readdirSync(folder).sort(byNumber)[n - 1] ?? `session ${n}`)
  return {
    model,
    place,
    run: (...args) => codemachine(place, args),
    start: (...args) => startCodemachine(place, args),
    startInProcess(args, options) {
      const started = startInProcess(place, args, options)
      inProcess.push(started)
      return started
    },
    records,
    recorded: (file, session) => readFileSync(recordedPath(file, session), 'utf8'),
    hasRecorded: (file, session) => existsSync(recordedPath(file, session)),
    memory: (file, session = 1) =>
      readFileSync(join(nth(join(place.directory, '.codemachine', 'projects'), session), file), 'utf8'),
    input(round) {
      const request = model.requests.find(({ conversation }) => conversation === round - 1)
      return request?.userTexts.at(-1) ?? ''
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(inProcess.map(each => each[Symbol.asyncDispose]()))
      endProcessesOf(place)
      await place[Symbol.asyncDispose]()
      await model[Symbol.asyncDispose]()
    },
  }
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
