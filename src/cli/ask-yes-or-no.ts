import { createInterface } from 'node:readline'
import { Interrupted } from '../base/errors.ts'
import type { CliContext } from './context.ts'

/**
 * Asks on the terminal; Enter alone is a yes, and what is neither yes nor no is asked again. Null if the input ends
 * without an answer. Throws `Interrupted` if the program is asked to end while it waits.
 */
export async function askYesOrNo({ stdin, stdout, signal }: CliContext, question: string): Promise<boolean | null> {
  const ask = () => stdout.write(`${question} [Y/n] `)
  // Not as a terminal of readline's own, which would take Ctrl-C for itself.
  const lines = createInterface({ input: stdin, terminal: false, signal })
  ask()
  try {
    for await (const line of lines) {
      const answer = line.trim().toLowerCase()
      if (['', 'y', 'yes'].includes(answer)) return true
      if (['n', 'no'].includes(answer)) return false
      ask()
    }
  } finally {
    // Leaving the loop does not do it, and a terminal that is still read keeps the program alive.
    lines.close()
  }
  stdout.write('\n')
  if (signal.aborted) throw new Interrupted(signal.reason)
  return null
}
