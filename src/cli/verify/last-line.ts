import { oneLine } from '../../ui/safe-text.ts'

/** The last line of what a gate printed that says something, fit to be shown; null if it said nothing. */
export function lastLine(output: string): string | null {
  const line = output
    .split('\n')
    .map(each => each.trim())
    .findLast(each => each !== '')
  return line === undefined ? null : oneLine(line, 160)
}
