import { CommandOutput } from '../engines/codex/translate-item.ts'
import { forPerson } from '../platform/control-group.ts'
import { runProcess, StartMark, shellLine, withSearchPathOutside } from '../platform/run-process.ts'
import type { HookMeans, LineEnd } from '../session/options.ts'
import type { Run } from './open-run.ts'
import { reachesNetwork } from './settings/gates.ts'
import type { World } from './world.ts'

/**
 * Runs the hooks of a session: a person's as the person, a project's in the sandbox of the rounds.
 * @param deniedPaths absolute paths that a project's hook may neither read nor create, as of now
 */
export function hookMeans(world: World, run: Run, deniedPaths: () => readonly string[]): HookMeans {
  const { commands, settings, records, hooks, where } = run
  return {
    hooks,
    run: async ({ of, run: line }, { variables, signal, timeoutMs }) => {
      const env = { ...variables, CODEMACHINE_DIRECTORY: records.directory }
      if (of === 'person')
        return await runAsPerson(line, world, {
          directory: records.directory,
          env: withSearchPathOutside({ ...forPerson(world.env), ...env }, where, world.platform),
          signal,
          timeoutMs,
        })
      const network = reachesNetwork(settings)
      return await commands.run({ run: line, network, env, unreadable: deniedPaths(), timeoutMs, signal })
    },
  }
}

/** Most output of a hook, in bytes. */
const MOST_PRINTED = 16 * 1024 * 1024
/** Most output that is passed on, in characters: more than is kept, so that secrets are removed before the cut. */
const OUTPUT_CHARACTERS = 16_000

async function runAsPerson(
  line: string,
  { platform, clock }: World,
  on: { directory: string; env: NodeJS.ProcessEnv; signal: AbortSignal; timeoutMs: number },
): Promise<LineEnd> {
  const { command, env } = shellLine(line, platform, 'as-one', on.env)
  const [program = '', ...args] = command
  const since = clock.monotonic()
  const ended = await runProcess(program, args, {
    ...on,
    env: { ...on.env, ...env },
    encoding: 'utf8',
    outputLimit: MOST_PRINTED,
  })
  const output = new CommandOutput()
  output.push(new StartMark(platform).take(Buffer.from(ended.stdout)))
  const came = { output: output.text(OUTPUT_CHARACTERS), durationMs: Math.round(clock.monotonic() - since) }
  if (ended.failure === null) return { kind: 'exited', exitCode: ended.exitCode ?? -1, ...came }
  if (ended.failure === 'timeout') return { kind: 'timed-out', ...came }
  if (ended.failure === 'aborted') return { kind: 'broken-off', ...came }
  // It ran, but has no exit code.
  const cut = ended.failure === 'output-limit' ? 'It printed more than 16 MB, and codemachine ended it.' : null
  const killed = ended.failure.startsWith('SIG') ? `It was ended by ${ended.failure}.` : null
  const why = cut ?? killed
  if (why !== null) return { kind: 'exited', exitCode: -1, ...came, output: `${came.output}\n${why}`.trimStart() }
  return { kind: 'not-started', problem: `Its shell could not be started: ${ended.failure}.`, ...came }
}
