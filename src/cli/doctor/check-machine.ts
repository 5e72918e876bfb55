import { findMarked } from '../../platform/find-marked.ts'
import { MARK_VARIABLE, parseMark } from '../../platform/marks.ts'
import { isStillRunning } from '../../platform/processes.ts'
import type { CliContext } from '../context.ts'
import { type Finding, ok, warning } from './finding.ts'

const MEASURED: readonly NodeJS.Platform[] = ['linux', 'darwin', 'win32']

/** Node and the platform. A Node that is too old does not get here: the entry point refuses it. */
export async function checkNode({ platform, arch, node }: CliContext): Promise<Finding[]> {
  const message = `Node ${node} on ${platform} ${arch}`
  if (MEASURED.includes(platform)) return [ok('node', message)]
  const mend = 'Name a codex that you have built yourself with --codex-bin, or use Linux, macOS or Windows.'
  return [warning('node', `${message}, for which there is no codex`, mend)]
}

/** What runs of codemachine that have died left running, in any work directory. */
export async function checkLeftovers({ platform }: CliContext): Promise<Finding[]> {
  if (platform === 'win32') return [ok('leftovers', 'not looked for: Windows does not show whose a process is')]
  const left: { pid: number; key: string }[] = []
  for (const { pid, value } of await findMarked(MARK_VARIABLE, value => parseMark(value) !== null, platform)) {
    const mark = parseMark(value)
    if (mark !== null && !(await isStillRunning(mark.owner, platform))) left.push({ pid, key: mark.key })
  }
  if (left.length === 0) return [ok('leftovers', 'nothing is left of earlier runs')]
  const places = [...new Set(left.map(({ key }) => key))].join(', ')
  return [
    warning(
      'leftovers',
      `A codemachine that has died left ${left.length === 1 ? 'a process' : `${left.length} processes`} running in ${places}: ${left.map(({ pid }) => pid).join(', ')}`,
      'The next codemachine that starts in the same directory ends them.',
    ),
  ]
}
