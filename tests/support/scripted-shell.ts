import type { SessionSecrets } from '../../src/core/shapes/secrets.ts'
import type { ShellCommand, ShellEnd } from '../../src/core/shapes/shell.ts'
import type { ShellMeans } from '../../src/session/shell/session-shell.ts'

/** How a command comes out; what is left out: it has passed, and printed nothing. */
type Came = Partial<ShellEnd & { exitCode: number; problem: string }>

interface ScriptedShellOptions {
  /** How a command comes out. */
  run?: (command: ShellCommand) => Came | Promise<Came>
  /** The values of the secrets that are there. */
  secrets?: Record<string, string>
  /** The checks of these secrets. */
  checks?: Record<string, string>
  /** The files in which a secret is found after a command. */
  leaks?: (after: string) => readonly string[]
  /** Files that no agent may read to begin with. */
  closed?: readonly string[]
  commandMs?: number
}

/** Commands that come out as a test says, with secrets that are kept in memory. */
export interface ScriptedShell extends ShellMeans {
  ran: ShellCommand[]
  /** Files that were hidden. */
  hidden: string[]
  /** Stores a secret, as a person does meanwhile. */
  store(key: string, value: string): void
}

/** Opens one. */
export function scriptedShell(options: ScriptedShellOptions = {}): ScriptedShell {
  const { run = () => ({}), checks = {}, leaks = () => [], closed = [], commandMs = 3_600_000 } = options
  const values = new Map(Object.entries(options.secrets ?? {}))
  const ran: ShellCommand[] = []
  const hidden: string[] = []
  const secrets: SessionSecrets = {
    async get(key) {
      const value = values.get(key)
      return value === undefined ? null : { key, value, check: checks[key] ?? null }
    },
    unreadable: () => [...closed, ...hidden],
    search: async () => ({ files: leaks(ran.at(-1)?.run ?? ''), problem: null }),
    hide: async files => void hidden.push(...files),
    refresh() {},
  }
  return {
    ran,
    hidden,
    secrets,
    commandMs,
    store: (key, value) => void values.set(key, value),
    createPlaceholders: async () => {},
    shell: {
      async run(command) {
        ran.push(command)
        const came = await run(command)
        const end = { kind: 'exited', exitCode: 0, durationMs: 1, stdout: '', stderr: '', ...came } as ShellEnd
        const kept = (text: string) => text.slice(-command.mostCharacters)
        return { ...end, stdout: kept(end.stdout), stderr: kept(end.stderr) }
      },
      async [Symbol.asyncDispose]() {},
    },
  }
}
