import { ANSWER_VERSION } from '../../bench/peers.ts'

/**
 * Gives a scripted peer `writeNext(rounds)`: so many rounds write a line of work.txt each, the one after them claims done. What it writes
 * follows from what is there alone, so a round that is cut off and gone on with from its savepoint comes to the very same files.
 */
export const WRITE_NEXT = `${ANSWER_VERSION}
import { appendFileSync, existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
function writeNext(rounds) {
  const file = join(process.cwd(), 'work.txt')
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\\n').slice(0, -1) : []
  if (lines.length < rounds) return writeFileSync(file, [...lines, 'line ' + (lines.length + 1), ''].join('\\n'))
  const projects = join(process.cwd(), '.codemachine/projects')
  const own = join(projects, readdirSync(projects)[0])
  writeFileSync(join(own, 'tasks.json'), JSON.stringify({ tasks: [{ id: 'T1', name: 'write', done: true }] }))
  const main = readFileSync(join(own, 'MAIN.md'), 'utf8')
  writeFileSync(join(own, 'MAIN.md'), main.replace('finite_incantatem: false', 'finite_incantatem: true'))
}
`

/** What work.txt holds after so many rounds of `writeNext`. */
export function writtenAfter(rounds: number): string {
  return Array.from({ length: rounds }, (_, at) => `line ${at + 1}\n`).join('')
}
