import { UserError } from '../../../../base/errors.ts'
import { formatBytes } from '../../../../base/text.ts'
import {
  findLeftovers,
  KINDS,
  type Leftover,
  type LeftoverKind,
  refuseWhileRunning,
  removeEmptyRoot,
  removeLeftover,
} from '../../../../project/service/leftovers.ts'
import { oneLine } from '../../../../tell/words/safe-text.ts'
import type { CliContext } from '../../../screen/cli-context.ts'
import { askEach } from '../../output.ts'
import { warnOn } from '../../warn-on.ts'
import { endService } from './service.ts'

interface UninstallFlags {
  dryRun?: true
  yes?: true
  keep?: string[]
  json?: true
}

/**
 * `codemachine uninstall`: names what codemachine has left, and removes it kind by kind. 4 if something could not be removed, 6
 * while a session runs.
 */
export async function uninstall(context: CliContext, flags: UninstallFlags): Promise<number> {
  const { stdout, stdin } = context
  const keep = kindsOf(flags.keep ?? [])
  const canAsk = stdin.isTTY === true && stdout.isTTY === true && !flags.json
  if (!flags.dryRun && !flags.yes && !canAsk) {
    throw new UserError(
      'CM0105',
      'Without a terminal, you cannot choose what to remove. Use --dry-run to list everything, or --yes to remove everything.',
    )
  }
  const found = await findLeftovers(context)
  if (!flags.json) stdout.write(linesOf(found))
  if (flags.dryRun) return said(context, flags, found, [])
  const kinds = KINDS.filter(kind => !keep.has(kind) && found.some(each => each.kind === kind && !each.isKept))
  const answers = flags.yes ? kinds.map(() => true) : await askEach(context, kinds.map(questionOf), false)
  const problems: string[] = []
  // First, for else it would run while the rest goes.
  if (answers[kinds.indexOf('services')] === true) problems.push(...(await endService(context)))
  await refuseWhileRunning(context)
  await (await import('../../../../fleet/local-postgres.ts')).refuseWithLocalPostgres(context)
  for (const each of found) {
    const isMeant = answers[kinds.indexOf(each.kind)] === true && !each.isKept
    const problem = isMeant ? await removeLeftover(context, each) : null
    if (problem !== null) problems.push(problem)
    else if (isMeant && !flags.json) stdout.write(`removed ${oneLine(each.path, MOST)}\n`)
  }
  await removeEmptyRoot(context)
  return said(context, flags, found, problems)
}

const MOST = 4000
const NPM = 'npm uninstall --global codemachine'

function said(
  context: CliContext,
  flags: UninstallFlags,
  found: readonly Leftover[],
  problems: readonly string[],
): number {
  const { stdout } = context
  if (flags.json) {
    const leftovers = found.map(({ worktree: _, ...shown }) => shown)
    stdout.write(`${JSON.stringify({ leftovers, problems, package: NPM })}\n`)
  } else {
    for (const problem of problems) warnOn(context)(problem)
    stdout.write(`The program itself: ${NPM}\n`)
  }
  return problems.length === 0 ? 0 : 4
}

function kindsOf(names: readonly string[]): Set<LeftoverKind> {
  const kinds = names.map(name => {
    const kind = KINDS.find(each => each === name)
    if (kind === undefined) throw new UserError('CM0103', `--keep ${oneLine(name, 60)}: there are ${KINDS.join(', ')}.`)
    return kind
  })
  return new Set(kinds)
}

const WORDS: Readonly<Record<LeftoverKind, string>> = {
  services: 'services',
  worktrees: 'worktrees of --worktree, and their branches',
  memory: 'the memory in work directories',
  settings: 'your settings',
  login: "codemachine's own login",
  history: 'texts typed on screens, and demos',
  sessions: 'the records of sessions',
}

function questionOf(kind: LeftoverKind): string {
  return `Remove ${WORDS[kind]}?`
}

/** Kind by kind, with sizes. */
function linesOf(found: readonly Leftover[]): string {
  if (found.length === 0) return 'codemachine has left nothing on this machine.\n'
  return KINDS.flatMap(kind => {
    const of = found.filter(each => each.kind === kind)
    if (of.length === 0) return []
    const bytes = of.reduce((sum, each) => sum + each.bytes, 0)
    return [
      `${kind}: ${WORDS[kind]}, ${formatBytes(bytes)}\n`,
      ...of.map(
        ({ path, bytes, note }) =>
          `  ${oneLine(path, MOST)}  ${formatBytes(bytes)}${note === null ? '' : `  (${note})`}\n`,
      ),
    ]
  }).join('')
}
