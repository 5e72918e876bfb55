import { oneLine } from '../../tell/words/safe-text.ts'
import type { CliContext } from '../screen/cli-context.ts'

/** Writes warnings on stderr, each in one line. */
export function warnOn({ stderr }: Pick<CliContext, 'stderr'>): (warning: string) => void {
  return warning => void stderr.write(`codemachine: ${oneLine(warning, 2_000)}\n`)
}
