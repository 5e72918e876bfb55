import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { systemClock } from '../../src/base/clock.ts'
import type { CliContext } from '../../src/doors/screen/cli-context.ts'
import { OWN_ENGINES } from '../../src/engines/registry.ts'
import { OWN_MODES, OWN_TEMPLATES } from '../../src/modes/registry.ts'
import { BIN } from './codemachine.ts'
import { NO_PROCESS } from './no-process.ts'

/** What a command is given in a place, typed in its work directory by nobody at a terminal; `more` is otherwise. */
export function cliContext(
  { env, directory, home }: { env: Record<string, string>; directory: string; home: string },
  more: Partial<CliContext> = {},
): CliContext {
  return {
    program: 'codemachine',
    env,
    cwd: directory,
    home,
    configHome: join(home, '.config'),
    platform: process.platform,
    arch: process.arch,
    node: process.versions.node,
    pid: process.pid,
    stdin: new PassThrough(),
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    clock: systemClock,
    engines: OWN_ENGINES,
    templates: OWN_TEMPLATES,
    modes: OWN_MODES,
    signal: new AbortController().signal,
    host: NO_PROCESS,
    own: { command: [process.execPath, BIN], args: [], detached: null },
    ...more,
  }
}
