import { mkdir, realpath, rmdir } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { messageOf, UserError } from '../base/errors.ts'
import { pathExists } from '../platform/path-exists.ts'
import { findRepository } from './person-repository.ts'
import {
  type Checkout,
  gitIn,
  type ListedWorktree,
  listWorktrees,
  openCheckout,
  uncommittedIn,
  whyOf,
} from './worktree-git.ts'
import { BRANCH_PREFIX, namesOfDay, worktreeName } from './worktree-name.ts'

/** A worktree of codemachine's, in which a session works on a branch of its own. */
export interface Worktree {
  name: string
  branch: string
  /** Its top. */
  top: string
  /** Where a session works: what corresponds to the directory that it was opened for. */
  directory: string
  /** The first work tree of the repository. */
  main: string
  isNew: boolean
  /** What the person has changed and not committed there, and what the worktree therefore lacks; none if it is not new. */
  uncommitted: readonly string[]
}

export interface WorktreeOptions {
  /** In the repository; the worktree begins with what is committed there. */
  directory: string
  /** Null: the day and a counter. */
  name: string | null
  env: NodeJS.ProcessEnv
  now: Date
}

/**
 * Opens the worktree of a name beside the main one, `<repository>.worktrees/<name>`, and makes it and its branch if they
 * are not there. The person's index, checkout and stash stay as they are, and no hook runs. A `UserError` of one sentence
 * if it cannot be; then nothing has been made.
 */
export async function openWorktree({ directory, name, env, now }: WorktreeOptions): Promise<Worktree> {
  const wanted = name === null ? null : worktreeName(name)
  const checkout = await openCheckout(directory, env)
  const inside = relative(checkout.repository.root, await realpath(directory))
  if (wanted !== null) {
    const place = worktreePlace(checkout.main, wanted)
    const listed = await listedAt(checkout, place.top)
    if (listed !== null) return await goOnIn(checkout, place, listed, inside)
  }
  await refuseWithoutBase(checkout, inside)
  const uncommitted = await uncommittedIn(checkout)
  const place = await makePlace(checkout, wanted === null ? namesOfDay(now) : [wanted])
  return { ...place, directory: join(place.top, inside), main: checkout.main, isNew: true, uncommitted }
}

/** Takes a new worktree away with its branch, if nothing has been done in it. */
export async function dropUnused({ top, branch, main, directory }: Worktree, env: NodeJS.ProcessEnv): Promise<void> {
  // Git leaves one alone that holds changes, but what is ignored it takes along.
  if (await pathExists(join(directory, '.codemachine'))) return
  const checkout = await openCheckout(main, env)
  if (!(await gitIn(checkout, ['worktree', 'remove', top])).ok) return
  await gitIn(checkout, ['branch', '-q', '-d', branch])
  await rmdir(dirname(top)).catch(() => {})
}

interface Place {
  name: string
  branch: string
  top: string
}

/** The branch and the top of the worktree of a name, whether it is there or not. `main`: the first work tree. */
export function worktreePlace(main: string, name: string): Place {
  return { name, branch: `${BRANCH_PREFIX}${name}`, top: join(`${main}.worktrees`, name) }
}

async function listedAt(checkout: Checkout, top: string): Promise<ListedWorktree | null> {
  const real = await realpath(top).catch(() => null)
  const listed = await listWorktrees(checkout.setting)
  return real === null ? null : (listed.find(({ directory }) => directory === top || directory === real) ?? null)
}

async function goOnIn(checkout: Checkout, place: Place, listed: ListedWorktree, inside: string): Promise<Worktree> {
  const { top, branch } = place
  await refuseForged(checkout, top)
  if (listed.branch !== branch) {
    throw new UserError(
      `${top} is not on ${branch} any more, but on ${listed.branch === null ? 'no branch' : 'another branch'}; switch it back, or take another name.`,
    )
  }
  const directory = join(top, inside)
  const real = await realpath(directory).catch(() => null)
  // An agent that works there could have put a link in its place.
  if (real === null || real !== join(await realpath(top), inside)) {
    throw new UserError(`${directory} is not a folder of that worktree; name another, or start at the top.`)
  }
  return { ...place, directory, main: checkout.main, isNew: false, uncommitted: [] }
}

/** Refuses a worktree whose `.git`, which agents that work there can write, no longer leads to the repository. */
export async function refuseForged({ repository }: Checkout, top: string): Promise<void> {
  const found = await findRepository(top)
  const isOurs =
    found !== null &&
    found.root === (await realpath(top)) &&
    found.commonDir === repository.commonDir &&
    dirname(found.gitDir) === join(repository.commonDir, 'worktrees')
  if (isOurs) return
  throw new UserError(`${join(top, '.git')} no longer leads to ${repository.commonDir}; look who has changed it.`)
}

async function refuseWithoutBase(checkout: Checkout, inside: string): Promise<void> {
  const { repository, main } = checkout
  const above = (await gitIn(checkout, ['rev-parse', '--show-superproject-working-tree'])).stdout.trim()
  if (above !== '') {
    throw new UserError(`${main} is a submodule, and worktrees of one are not made; run it in a clone of its own.`)
  }
  if (!(await gitIn(checkout, ['rev-parse', '--verify', '--quiet', 'HEAD^{commit}'])).ok) {
    throw new UserError(`${repository.root} has no commit yet, and a worktree begins with one; commit something first.`)
  }
  const [folder = ''] = BRANCH_PREFIX.split('/')
  if (await hasBranch(checkout, folder)) {
    throw new UserError(
      `There is a branch called ${folder}, beside which git makes no ${BRANCH_PREFIX}…; give it another name: git branch -m ${folder} …`,
    )
  }
  if (inside === '') return
  // Git writes its paths with `/` everywhere.
  const path = inside.replaceAll('\\', '/')
  if ((await gitIn(checkout, ['cat-file', '-t', `HEAD:${path}`])).stdout.trim() === 'tree') return
  throw new UserError(`${inside} is in no commit yet, so the worktree would be without it; commit it first.`)
}

/** Makes the worktree of the first of these names that is free; of two runs that begin at once each gets its own. */
async function makePlace(checkout: Checkout, names: Iterable<string>): Promise<Place> {
  let problem: Taken = { why: '' }
  for (const name of names) {
    const place = worktreePlace(checkout.main, name)
    const taken = (await whyTaken(checkout, place)) ?? (await make(checkout, place))
    if (taken === null) return place
    problem = taken
  }
  const { why, ...hint } = problem
  throw new UserError(`The worktree cannot be made: ${why}.`, hint)
}

interface Taken {
  why: string
  hint?: string
}

/** Why a name is not free; null if it is. */
async function whyTaken(checkout: Checkout, { name, branch, top }: Place): Promise<Taken | null> {
  const isThere = await pathExists(top)
  if (await hasBranch(checkout, branch)) {
    const why = `there is a branch ${branch} already, and no worktree of it in ${top}; take another name than ${name}, or delete that branch if it holds nothing that you need`
    const hint = `To work on it again: git worktree prune && git worktree add ${top} ${branch}`
    return isThere ? { why } : { why, hint }
  }
  return isThere ? { why: `${top} is there already, and is no worktree of this repository; take another name` } : null
}

async function hasBranch(checkout: Checkout, branch: string): Promise<boolean> {
  return (await gitIn(checkout, ['show-ref', '--verify', '--quiet', `refs/heads/${branch}`])).ok
}

/** Null if it is made; why not if somebody has been faster. */
async function make(checkout: Checkout, { branch, top }: Place): Promise<Taken | null> {
  const folder = dirname(top)
  const made = await mkdir(folder, { recursive: true }).catch(error => {
    throw new UserError(
      `The worktree cannot be made in ${folder}, beside ${basename(checkout.main)}: ${messageOf(error)}.`,
    )
  })
  const result = await gitIn(checkout, ['worktree', 'add', '--no-track', '-q', '-b', branch, top, 'HEAD'])
  if (result.ok) return null
  if (/exists/.test(result.stderr)) return { why: whyOf(result) }
  // Git takes the folder away itself, but not the branch.
  await gitIn(checkout, ['branch', '-q', '-d', branch])
  if (made !== undefined) await rmdir(made).catch(() => {})
  throw new UserError(`git could not make the worktree ${top}: ${whyOf(result)}.`)
}
