import { join } from 'node:path'
import { UserError, unreachable } from '../../base/errors.ts'
import { openRecords } from '../../session/records/records.ts'
import { type RunLock, takeRunLock } from '../../session/records/run-lock.ts'
import { shellWord } from '../../tell/words/commands.ts'
import { formatCount } from '../../tell/words/numbers.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
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
import { refuseRunning } from '../find.ts'
import type { World } from '../world.ts'

/** What is to be landed, and with what words. */
interface WantedLanding {
  /** The worktree; left out: the only one that has something to land. */
  name?: string | undefined
  /** Of the merge; left out: one that names the branch. */
  message?: string | undefined
  /** With what message what is not committed in the worktree is committed first; left out: it is not. */
  commit?: string | undefined
}

/**
 * Merges what was done in a worktree into the branch that is checked out, while nothing runs in either. Resolves with what
 * came of it, in lines; a `UserError` if it is not merged.
 * @param directory of the checkout, or a folder in it; absolute
 */
export async function landWorktree(
  world: World,
  directory: string,
  { name, message: typed, commit }: WantedLanding,
): Promise<string[]> {
  const checkout = await openCheckout(directory, world.env)
  const chosen = name === undefined ? await theOnly(checkout) : await named(checkout, name)
  const { root } = checkout.repository
  for (const top of chosen.top === null ? [root] : [root, chosen.top]) {
    await refuseRunning(world, top, () => foldersOf(checkout, top, top === root ? 'HEAD' : chosen.branch))
  }
  await readTargetBranch(checkout)
  const { branch, top } = chosen
  await using _checkout = await hold(world, root)
  await using _worktree = top === null ? null : await hold(world, top)
  const message = typed ?? `Merge branch '${branch}'`
  if (chosen.uncommitted.length === 0 || top === null) {
    return inWords(checkout, chosen, await landBranch(checkout, { branch, aside: null, message }))
  }
  if (commit === undefined) throw uncommitted(chosen, top)
  const aside = await commitUncommitted(checkout, top, commit)
  const landing = await landBranch(checkout, { branch, aside, message })
  if (landing.kind === 'landed') await advanceWorktreeBranch(checkout, top, aside)
  return inWords(checkout, chosen, landing)
}

/** Keeps runs out of a directory until it is disposed. */
async function hold(world: World, directory: string): Promise<RunLock> {
  const { lock } = await openRecords({ ...world, directory })
  const hint = 'Wait for its end, or end it with codemachine stop, and land again.'
  return await takeRunLock(lock, { ...world, now: new Date(world.clock.now()), hint })
}

async function named(checkout: Checkout, name: string): Promise<LandableBranch> {
  const wanted = checkWorktreeName(name.replace(/^codemachine\//, ''))
  const [found] = await listLandableBranches(checkout, wanted)
  if (found !== undefined) return found
  const all = await listLandableBranches(checkout, null)
  throw new UserError(
    'CM0511',
    `There is no branch codemachine/${wanted}.`,
    all.length === 0 ? {} : { hint: listed(all) },
  )
}

async function theOnly(checkout: Checkout): Promise<LandableBranch> {
  const all = await listLandableBranches(checkout, null)
  const full = all.filter(({ ahead, uncommitted }) => ahead > 0 || uncommitted.length > 0)
  const candidates = full.length === 0 ? all : full
  const [only, ...others] = candidates
  if (only === undefined) {
    throw new UserError('CM0511', 'There is nothing to land: no worktree of codemachine has been made here.', {
      hint: 'To work in one: codemachine "…" --worktree',
    })
  }
  if (others.length === 0) return only
  throw new UserError('CM0511', 'There is more than one branch to land; name one.', { hint: listed(candidates) })
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
    'CM0512',
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

function inWords(checkout: Checkout, { branch, top }: LandableBranch, landing: LandingResult): string[] {
  const { root } = checkout.repository
  switch (landing.kind) {
    case 'landed': {
      const { commit, into, files } = landing
      return [
        `${branch} is merged into ${into} as ${commit.slice(0, 10)}: ${formatCount(files, 'file')} changed.`,
        howToRemove(top, branch, root),
      ]
    }
    case 'nothing-new':
      return [`${branch} has nothing that ${landing.into} does not have already.`, howToRemove(top, branch, root)]
    case 'conflict':
      throw new UserError(
        'CM0513',
        `${branch} and ${landing.into} have both changed ${some(landing.files)}, so it is not merged; nothing has been touched.`,
        { hint: `To settle it by hand: git -C ${shellWord(root)} merge ${branch}`, exitCode: 4 },
      )
    case 'in-the-way':
      throw new UserError(
        'CM0512',
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
