import type { CliContext } from './context.ts'

/** Whether what is written to stdout is coloured: as NO_COLOR (no-color.org) or FORCE_COLOR say, else on a terminal. */
export function wantsColour({ env, stdout }: Pick<CliContext, 'env' | 'stdout'>): boolean {
  if (env.NO_COLOR) return false
  if (env.FORCE_COLOR !== undefined) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false'
  return stdout.isTTY === true && env.TERM !== 'dumb'
}
