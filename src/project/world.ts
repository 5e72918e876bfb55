import { resolve } from 'node:path'
import type { Clock } from '../base/clock.ts'
import type { EngineKinds } from '../core/engine.ts'
import type { TemplateKinds } from '../core/template.ts'
import { homeVariable, pathsOf } from '../platform/files.ts'
import { type Redactor, redactorOf } from '../secrets/redactor.ts'
import { secretVariables } from '../secrets/variables.ts'
import type { RecordsPlaces } from '../session/records/records.ts'
import type { Modes } from './modes.ts'

/**
 * The program's only access to the machine outside, without a terminal. `src/index.ts` makes it from the importing process,
 * the command line's entry point from its own.
 */
export interface World {
  env: NodeJS.ProcessEnv
  /** Base of a relative work directory; absolute. */
  cwd: string
  /** The person's home directory. */
  home: string
  /** Folder of the person's configuration: `$XDG_CONFIG_HOME`, else `~/.config`. Absolute. */
  configHome: string
  platform: NodeJS.Platform
  arch: string
  /** Version of Node, without a `v`: certificates name it. */
  node: string
  pid: number
  /** Whether only codemachine uses the process, so that all leftover processes are its agents'; left out: no. */
  ownsProcess?: true
  /** Whether a scripted model replaces the real one (the demo): then there is no warning about the agents' reach. */
  isDemo?: true
  clock: Clock
  /** Returns the tasks per core in the last minute, which stretch doctor's bounds; left out: asks the machine. */
  load?: () => number
  /** Engines for rounds; `codex` is one of them. */
  engines: EngineKinds
  /** Templates for sessions. */
  templates: TemplateKinds
  /** Other parts of their modes. */
  modes: Modes
  /** Ends everything when it aborts; its reason is `SIGINT`, `SIGTERM` or `SIGHUP`. */
  signal: AbortSignal
}

/** Variable with the output file of a runner that outlives its starter. */
export const DETACHED_VARIABLE = 'CODEMACHINE_DETACHED'

/** Variable of a runner whose owner holds its stdin: when that closes, the runner ends as by SIGTERM. */
export const OWNED_VARIABLE = 'CODEMACHINE_OWNED'

/** Returns the absolute work directory; `directory`: absolute or relative to `World.cwd`, left out: `World.cwd`. */
export function directoryOf(
  { cwd }: Pick<World, 'cwd'>,
  { directory = '.' }: { directory?: string | undefined },
): string {
  return resolve(cwd, directory)
}

/** Returns where to look for the records of a directory. */
export function placesOf({ env, home, platform, templates }: World, directory: string): RecordsPlaces {
  return { directory, env, home, platform, templates }
}

/** Returns a redactor for the secrets of the environment. */
export function redactorOfEnvironment({ env }: Pick<World, 'env'>): Redactor {
  return redactorOf(secretVariables(env))
}

/**
 * Returns the folder of a person's settings, by the XDG base directory specification; absolute.
 * @param xdg `XDG_CONFIG_HOME`: ignored if relative, as the specification demands
 */
export function configHomeOf(xdg: string | undefined, home: string, platform: NodeJS.Platform): string {
  const { isAbsolute, join } = pathsOf(platform)
  return xdg !== undefined && isAbsolute(xdg) ? xdg : join(home, '.config')
}

/**
 * Returns the person's home directory, and the environment with it. An empty or relative `HOME` counts as unset, on Windows
 * `USERPROFILE`: codex and git would take it for a folder of their own directory.
 * @param named as the system reads that variable
 * @param ofAccount returns the home directory of the account
 */
export function homeOf(
  env: NodeJS.ProcessEnv,
  named: string,
  ofAccount: () => string,
  platform: NodeJS.Platform,
): { home: string; env: NodeJS.ProcessEnv } {
  if (pathsOf(platform).isAbsolute(named)) return { home: named, env }
  const home = ofAccount()
  return { home, env: { ...env, [homeVariable(platform)]: home } }
}
