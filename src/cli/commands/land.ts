import { join } from 'node:path'
import { refuseRunning } from '../../app/find.ts'
import { UserError, unreachable } from '../../base/errors.ts'
import { openRecords } from '../../records/records.ts'
import { type RunLock, takeRunLock } from '../../records/run-lock.ts'
import type { CliContext } from '../../tui/cli-context.ts'
import { shellWord } from '../../words/commands.ts'
import { formatCount } from '../../words/numbers.ts'
import { oneLine } from '../../words/safe-text.ts'
import {
  advanceWorktreeBranch,
  commitUncommitted,
  type LandableBranch,
  type LandingResult,
  landBranch,
  listLandableBranches,
  readTargetBranch,
} from '../../workspace/worktree/land.ts'
import { type Checkout, checkWorktreeName, openCheckout, runGitIn } from '../../workspace/worktree/worktree.ts'
import { type DirectoryFlags, directoryOf } from '../flags.ts'

interface LandFlags extends DirectoryFlags {
  /** Of the merge; left out: one that names the branch. */
  message?: string
  /** With what message what is not committed in the worktree is committed first; left out: it is not. */
  commit?: string
}

/**
 * `codemachine land`: merges what was done in a worktree into the branch that is checked out.
 * @param name left out: the only one that has something to land
 */
export async function land(context: CliContext, name: string | undefined, flags: LandFlags): Promise<number> {
  const { commit } = flags
  for (const flag of ['message', 'commit'] as const) {
    if (flags[flag]?.trim() === '') throw new UserError(`--${flag} is blank; use a message for git.`)
  }
  const checkout = await openCheckout(directoryOf(context, flags), context.env)
  const chosen = name === undefined ? await theOnly(checkout) : await named(checkout, name)
  const { root } = checkout.repository
  for (const top of chosen.top === null ? [root] : [root, chosen.top]) {
    await refuseRunning(context, top, () => foldersOf(checkout, top, top === root ? 'HEAD' : chosen.branch))
  }
  await readTargetBranch(checkout)
  const { branch, top } = chosen
  await using _checkout = await hold(context, root)
  await using _worktree = top === null ? null : await hold(context, top)
  const message = flags.message ?? `Merge branch '${branch}'`
  if (chosen.uncommitted.length === 0 || top === null) {
    return tell(context, checkout, chosen, await landBranch(checkout, { branch, aside: null, message }))
  }
  if (commit === undefined) throw uncommitted(chosen, top)
  const aside = await commitUncommitted(checkout, top, commit)
  const landing = await landBranch(checkout, { branch, aside, message })
  if (landing.kind === 'landed') await advanceWorktreeBranch(checkout, top, aside)
  return tell(context, checkout, chosen, landing)
}

/** Keeps runs out of a directory until it is disposed. */
async function hold(context: CliContext, directory: string): Promise<RunLock> {
  const { lock } = await openRecords({ ...context, directory })
  const hint = 'Wait for its end, or end it with codemachine stop, and land again.'
  return await takeRunLock(lock, { ...context, now: new Date(context.clock.now()), hint })
}

async function named(checkout: Checkout, name: string): Promise<LandableBranch> {
  const wanted = checkWorktreeName(name.replace(/^codemachine\//, ''))
  const [found] = await listLandableBranches(checkout, wanted)
  if (found !== undefined) return found
  const all = await listLandableBranches(checkout, null)
  throw new UserError(`There is no branch codemachine/${wanted}.`, all.length === 0 ? {} : { hint: listed(all) })
}

async function theOnly(checkout: Checkout): Promise<LandableBranch> {
  const all = await listLandableBranches(checkout, null)
  const full = all.filter(({ ahead, uncommitted }) => ahead > 0 || uncommitted.length > 0)
  const candidates = full.length === 0 ? all : full
  const [only, ...others] = candidates
  if (only === undefined) {
    throw new UserError('There is nothing to land: no worktree of codemachine has been made here.', {
      hint: 'To work in one: codemachine "…" --worktree',
    })
  }
  if (others.length === 0) return only
  throw new UserError('There is more than one branch to land; name one.', { hint: listed(candidates) })
}

function listed(all: readonly LandableBranch[]): string {
  return all.map(each => `${each.name}: ${stateOf(each)}`).join('\n  ')
}

function stateOf({ ahead, uncommitted, top }: LandableBranch): string {
  const changes = uncommitted.length === 0 ? '' : `, ${formatCount(uncommitted.length, 'change')} not committed`
  return `${formatCount(ahead, 'commit')}${changes}${top === null ? ', no worktree any more' : ''}`
}

function uncommitted({ name, uncommitted: files }: LandableBranch, top: string): UserError {
  return new UserError(
    `In ${top} there are changes that are not committed, and would not come along: ${some(files)}.`,
    {
      hint: `To commit all of them first: codemachine land ${name} --commit "…"`,
    },
  )
}

/** The folders of a work tree that are committed, absolute. */
async function foldersOf(checkout: Checkout, top: string, commit: string): Promise<string[]> {
  const { stdout } = await runGitIn(checkout, ['ls-tree', '-r', '-d', '-z', '--name-only', '--full-tree', commit])
  const names = Buffer.from(stdout, 'latin1').toString('utf8').split('\0')
  return names.filter(name => name !== '').map(name => join(top, name))
}

function tell(
  { stdout }: CliContext,
  checkout: Checkout,
  { branch, top }: LandableBranch,
  landing: LandingResult,
): number {
  const { root } = checkout.repository
  switch (landing.kind) {
    case 'landed': {
      const { commit, into, files } = landing
      stdout.write(
        `${branch} is merged into ${into} as ${commit.slice(0, 10)}: ${formatCount(files, 'file')} changed.\n${howToRemove(top, branch, root)}\n`,
      )
      return 0
    }
    case 'nothing-new':
      stdout.write(
        `${branch} has nothing that ${landing.into} does not have already.\n${howToRemove(top, branch, root)}\n`,
      )
      return 0
    case 'conflict':
      throw new UserError(
        `${branch} and ${landing.into} have both changed ${some(landing.files)}, so it is not merged; nothing has been touched.`,
        { hint: `To settle it by hand: git -C ${shellWord(root)} merge ${branch}`, exitCode: 4 },
      )
    case 'in-the-way':
      throw new UserError(
        `${branch} would overwrite what is not committed in ${root}: ${some(landing.files)}; nothing has been touched.`,
        { hint: 'Commit it or put it elsewhere, and land again.' },
      )
    default:
      return unreachable(landing)
  }
}

function howToRemove(top: string | null, branch: string, root: string): string {
  const git = `git -C ${shellWord(root)}`
  const worktree = top === null ? '' : `${git} worktree remove ${shellWord(top)} && `
  return `To remove what is left of it: ${worktree}${git} branch -d ${branch}`
}

const MOST_SHOWN = 20

function some(files: readonly string[]): string {
  const shown = files.slice(0, MOST_SHOWN).map(file => oneLine(file, 200))
  const more = files.length - shown.length
  return `${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
