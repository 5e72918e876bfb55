import { type ChildProcess, spawn } from 'node:child_process'
import { isAbsolute } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { messageOf, systemErrorCode } from '../base/errors.ts'
import { endTree } from '../platform/end-processes.ts'
import { findProgram, isProgram, pathVariable } from '../platform/find-program.ts'
import { searchPathOutside } from '../platform/search-path.ts'
import { isWritableByAgents, type WritableByAgents } from '../platform/writable-by-agents.ts'
import type { Door, DoorProblem } from './door.ts'
import { plainLine } from './plain-line.ts'

export interface CommandPlace {
  clock: Clock
  platform: NodeJS.Platform
  env: Readonly<NodeJS.ProcessEnv>
  /** The person's home directory: where it runs. */
  home: string
  /** No program is taken from there. */
  where: WritableByAgents
}

/** Runs a command of the person's, without a shell: the notification is the JSON on its stdin. */
export function commandDoor(argv: readonly string[], place: CommandPlace): Door {
  const [program = '', ...args] = argv
  const shown = plainLine(program, NAME_CHARS)
  return {
    name: 'command',
    deliver: async (notification, signal) => {
      const path = await programOf(program, place)
      if (typeof path !== 'string') return path
      const end = await run(path, args, `${JSON.stringify(notification)}\n`, place, signal)
      return end === null
        ? null
        : { kind: `command-${end.kind}`, sentence: `The notification command ${shown} ${end.how}.` }
    },
  }
}

const NAME_CHARS = 200
/** What it may take, ms. */
const COMMAND_MS = 30_000

/** A name is looked for on the PATH. */
async function programOf(program: string, place: CommandPlace): Promise<string | DoorProblem> {
  const shown = plainLine(program, NAME_CHARS)
  const path = isAbsolute(program) ? program : null
  const found =
    path === null ? await findProgram(program, place) : { path: (await isProgram(path)) ? path : null, passedOver: [] }
  if (found.path !== null && (path === null || !isWritableByAgents(path, place.where))) return found.path
  if (found.path !== null || found.passedOver.length > 0)
    return {
      kind: 'command-unsafe',
      sentence: `The notification command ${shown} is not run, for an agent can write where it is; keep it elsewhere.`,
    }
  return {
    kind: 'command-missing',
    sentence: `The notification command ${shown} is not there${path === null ? '' : ', or may not be run'}; correct notify.command in the settings.`,
  }
}

/** Resolves when it has ended, with null if all is well; how it ended goes on after its name. */
function run(
  path: string,
  args: readonly string[],
  input: string,
  { clock, platform, env, home, where }: CommandPlace,
  signal: AbortSignal,
): Promise<{ kind: string; how: string } | null> {
  const name = pathVariable(env)
  return new Promise(resolve => {
    const notStarted = (error: unknown) =>
      resolve({ kind: 'not-started', how: `could not be started (${systemErrorCode(error) ?? messageOf(error)})` })
    let child: ChildProcess
    try {
      child = spawn(path, args, {
        cwd: home,
        // What it starts in its turn is no agent's program either.
        env: { ...env, [name]: searchPathOutside(env[name] ?? '', where) },
        detached: true,
        windowsHide: true,
        stdio: ['pipe', 'ignore', 'ignore'],
      })
    } catch (error) {
      return notStarted(error)
    }
    const over = new AbortController()
    let hangs = false
    const bound = clock.wait(COMMAND_MS, AbortSignal.any([over.signal, signal])).then(async () => {
      if (over.signal.aborted || child.pid === undefined) return
      hangs = !signal.aborted
      await endTree(child.pid, 'SIGKILL', platform)
    })
    // It need not read it.
    child.stdin?.on('error', () => {}).end(input)
    child.once('error', error => {
      over.abort()
      notStarted(error)
    })
    child.once('exit', (code, killedBy) => {
      over.abort()
      const how = hangs
        ? { kind: 'hangs', how: `did not end within ${COMMAND_MS / 1000} s, and was ended` }
        : { kind: 'failed', how: killedBy === null ? `ended with exit code ${code}` : `was ended by ${killedBy}` }
      void bound.then(() => resolve(code === 0 ? null : how))
    })
  })
}
