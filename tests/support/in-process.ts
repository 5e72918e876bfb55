import { PassThrough } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import type { EngineKinds } from '../../src/core/engine.ts'
import type { Recorded, RecordedOf } from '../../src/core/events/events.ts'
import { runCommandLine, showError } from '../../src/doors/cli/entry.ts'
import type { CliContext } from '../../src/doors/screen/cli-context.ts'
import { OWN_ENGINES } from '../../src/engines/registry.ts'
import { cliContext } from './cli-context.ts'
import type { CommandOptions, Ended, Running } from './codemachine.ts'
import type { TestPlace } from './place.ts'

const BOUND_MS = 280_000
/** What a run gets to end when its test is over. */
const END_MS = 10_000

/** A command line that runs in this process, on the clock it is given. Disposing of it ends it as SIGTERM would; so does `signal`, as that one. */
export interface InProcess extends Running {
  /** What `--json` has printed so far. */
  readonly events: readonly Recorded[]
  stdout(): string
  stderr(): string
}

export interface InProcessOptions extends CommandOptions {
  clock: Clock
  /** Left out: codemachine's own. */
  engines?: EngineKinds
  /** How many tasks wait for each core of the machine, as doctor is told; none if left out. */
  load?: number
  /** Whether stdin, stdout and stderr say that they are a terminal; they do not if left out. */
  tty?: boolean
  /** Which of the programs of the package; `codemachine` if left out. */
  program?: CliContext['program']
}

/**
 * Runs the command line to its end in this process, on the clock of the system: for what is said and exit codes of a
 * command that starts no session, for which a process of its own takes twenty times as long and shows no more.
 */
export async function codemachineHere(
  place: TestPlace,
  args: readonly string[],
  options: Omit<InProcessOptions, 'clock'> = {},
): Promise<Ended> {
  await using run = startInProcess(place, args, { ...options, clock: systemClock })
  return await run.ended
}

/** Does what the built command line does, with the clock put in. */
export function startInProcess(place: TestPlace, args: readonly string[], options: InProcessOptions): InProcess {
  const ending = new AbortController()
  const isTTY = options.tty ?? false
  const stdin = Object.assign(new PassThrough(), { isTTY })
  const stdout = Object.assign(new PassThrough(), { isTTY, ...(isTTY ? { columns: 100 } : {}) })
  const stderr = Object.assign(new PassThrough(), { isTTY })
  stdin.end(options.input ?? '')
  const events: Recorded[] = []
  const written = { stdout: '', stderr: '' }
  const watchers = new Set<() => void>()
  let isOver = false
  let rest = ''
  const tellWatchers = () => {
    for (const look of [...watchers]) look()
  }
  stdout.setEncoding('utf8').on('data', (text: string) => {
    written.stdout += text
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.startsWith('{"')) events.push(JSON.parse(line))
    tellWatchers()
  })
  stderr.setEncoding('utf8').on('data', (text: string) => {
    written.stderr += text
  })

  const env = { ...place.env, ...options.env }
  const cwd = options.cwd ?? place.directory
  const { clock, engines = OWN_ENGINES, load = 0, program = 'codemachine' } = options
  const { signal } = ending
  const asked = { program, env, cwd, stdin, stdout, stderr, clock, engines, signal, load: () => load }
  const context = cliContext(place, asked)
  const { promise, resolve, reject } = Promise.withResolvers<Ended>()
  promise.catch(() => {})
  const whatItSaid = () => `${written.stdout}\n${written.stderr}`
  const bound = setTimeout(() => {
    ending.abort('SIGTERM')
    reject(new Error(`codemachine ${args.join(' ')} did not end within ${BOUND_MS} ms.\n${whatItSaid()}`))
  }, BOUND_MS)
  const over = runCommandLine(context, args)
    .catch((error: unknown) => showError(error, context))
    .then(async exitCode => {
      stdout.end()
      stderr.end()
      await Promise.all([ended(stdout), ended(stderr)])
      resolve({ exitCode, signal: null, ...written, events })
    })
    .catch(reject)
    .finally(() => {
      clearTimeout(bound)
      isOver = true
      tellWatchers()
    })

  return {
    events,
    stdout: () => written.stdout,
    stderr: () => written.stderr,
    ended: promise,
    signal: name => ending.abort(name),
    async alive() {
      await delay(20)
      if (isOver) throw new Error(`codemachine has ended.\n${whatItSaid()}`)
    },
    event<T extends Recorded['type']>(type: T, matches: (event: RecordedOf<T>) => boolean = () => true) {
      return new Promise<RecordedOf<T>>((resolve, reject) => {
        const look = () => {
          const found = events.find(
            (event): event is RecordedOf<T> => event.type === type && matches(event as RecordedOf<T>),
          )
          if (found === undefined && !isOver) return
          watchers.delete(look)
          if (found) resolve(found)
          else promise.then(() => reject(new Error(`codemachine ended without ${type}.\n${whatItSaid()}`)), reject)
        }
        watchers.add(look)
        look()
      })
    },
    async [Symbol.asyncDispose]() {
      ending.abort('SIGTERM')
      const late = new Promise(resolve => {
        const timer = setTimeout(resolve, END_MS)
        void over.finally(() => clearTimeout(timer))
      })
      await Promise.race([over, late])
    },
  }
}

async function ended(stream: PassThrough): Promise<void> {
  if (!stream.readableEnded) await new Promise(resolve => stream.once('end', resolve))
}
