import { isAbsolute, join, resolve } from 'node:path'
import type { Clock } from '../base/clock.ts'
import type { EngineKinds } from '../core/engine.ts'
import type { TemplateKinds } from '../core/template.ts'
import { type Redactor, redactorOf } from '../secrets/redactor.ts'
import { secretVariables } from '../secrets/variables.ts'
import type { RecordsPlaces } from '../session/records/records.ts'
import type { Modes } from './modes.ts'

/**
 * What a program hands to codemachine: the only way to the machine outside, without a terminal. `src/index.ts` makes it of
 * the process that imports codemachine, the entry point of the command line of its own.
 */
export interface World {
  env: NodeJS.ProcessEnv
  /** What a relative work directory is resolved against; absolute. */
  cwd: string
  /** The person's home directory. */
  home: string
  /** Where programs keep the person's configuration: `$XDG_CONFIG_HOME`, else `~/.config`. Absolute. */
  configHome: string
  platform: NodeJS.Platform
  arch: string
  /** Version of Node, without a `v`: certificates name it. */
  node: string
  pid: number
  /** Whether the process is codemachine's alone, so that nothing but its agents leaves processes behind; left out: no. */
  ownsProcess?: true
  /** Whether a scripted model plays the part of a real one (the demo): what its agents could reach is not warned of then. */
  isDemo?: true
  clock: Clock
  /** How many tasks wanted each core in the last minute, by which bounds of doctor stretch; left out: as the machine says. */
  load?: () => number
  /** The engines that rounds may run on; `codex` is among them. */
  engines: EngineKinds
  /** The templates that sessions may be of. */
  templates: TemplateKinds
  /** What their modes bring beside them. */
  modes: Modes
  /** Ends what goes on when it is aborted; its reason is `SIGINT`, `SIGTERM` or `SIGHUP`. */
  signal: AbortSignal
}

/** Names, in the environment of a runner that outlives who has started it, the file that its output goes to. */
export const DETACHED_VARIABLE = 'CODEMACHINE_DETACHED'

/** Says, in the environment of a runner, that its stdin is held by who owns it: it ends, as by SIGTERM, when that is closed. */
export const OWNED_VARIABLE = 'CODEMACHINE_OWNED'

/** The work directory that is meant, absolute; `directory`: absolute or relative to `World.cwd`, left out: that one. */
export function directoryOf(
  { cwd }: Pick<World, 'cwd'>,
  { directory = '.' }: { directory?: string | undefined },
): string {
  return resolve(cwd, directory)
}

/** Where the records of a directory are looked for. */
export function placesOf({ env, home, platform, templates }: World, directory: string): RecordsPlaces {
  return { directory, env, home, platform, templates }
}

/** Takes the secrets of the environment out of what is shown. */
export function redactorOfEnvironment({ env }: Pick<World, 'env'>): Redactor {
  return redactorOf(secretVariables(env))
}

/**
 * The folder of a person's settings, by the XDG base directory specification; absolute.
 * @param xdg `XDG_CONFIG_HOME`: ignored, as the specification wants it, if it is relative
 */
export function configHomeOf(xdg: string | undefined, home: string): string {
  return xdg !== undefined && isAbsolute(xdg) ? xdg : join(home, '.config')
}
