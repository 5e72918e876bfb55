import { addAbortSignal } from 'node:stream'
import type { RunFlags } from '../app/run-flags.ts'
import type { CliContext } from '../app/world.ts'
import { Interrupted, UserError } from '../base/errors.ts'
import { problemOfPrompt } from '../base/text.ts'

const MOST_BYTES = 8 * 1024 * 1024

/**
 * The text of a goal or prompt: what was typed, or all of standard input where that was `-`. Checked. Throws
 * `Interrupted` if the program is asked to end while it reads.
 */
export async function readText(context: CliContext, typed: string): Promise<string> {
  const text = typed === '-' ? await readAll(context) : typed
  const problem = problemOfPrompt(text)
  if (problem !== null) throw new UserError(problem)
  return text.trim()
}

async function readAll({ stdin, signal }: CliContext): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of addAbortSignal(signal, stdin)) {
      const bytes = Buffer.from(chunk)
      length += bytes.length
      if (length > MOST_BYTES)
        throw new UserError('Standard input has more than 8 MiB; put the text into a file and name that file.')
      chunks.push(bytes)
    }
  } catch (error) {
    throw signal.aborted ? new Interrupted(signal.reason) : error
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Whether a person watches, on a terminal that can be drawn on, who has not asked for lines. */
export function wantsScreen(
  { stdin, stdout, env, display }: CliContext,
  { plain, json }: Pick<RunFlags, 'plain' | 'json'>,
): boolean {
  if (display !== undefined || plain || json) return false
  return stdin.isTTY === true && stdout.isTTY === true && env.TERM !== 'dumb'
}

/** Whether what is written to stdout is coloured: as NO_COLOR (no-color.org) or FORCE_COLOR say, else on a terminal. */
export function wantsColour({ env, stdout }: Pick<CliContext, 'env' | 'stdout'>): boolean {
  if (env.NO_COLOR) return false
  if (env.FORCE_COLOR !== undefined) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false'
  return stdout.isTTY === true && env.TERM !== 'dumb'
}
