import type { CliContext } from './context.ts'
import type { RunFlags } from './flags.ts'

/** Whether a person watches, on a terminal that can be drawn on, who has not asked for lines. */
export function wantsScreen(
  { stdin, stdout, env, display }: CliContext,
  { plain, json }: Pick<RunFlags, 'plain' | 'json'>,
): boolean {
  if (display !== undefined || plain || json) return false
  return stdin.isTTY === true && stdout.isTTY === true && env.TERM !== 'dumb'
}
