import { UserError } from '../../base/errors.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import { readHead } from '../../workspace/git/git.ts'
import { type Remote, remoteOfBranch } from '../../workspace/worktree/push.ts'
import type { Checkout } from '../../workspace/worktree/worktree.ts'

/** How to choose a remote. */
export interface ChooseRemote {
  /** Its name from `--remote` or `publish_remote`; null: none given. */
  remote: string | null
  /** Asks the person to pick one; null: nobody can answer. */
  choose(names: readonly string[]): Promise<string | null>
}

/** Returns the remote: named, of the branch, the only one, or picked. Throws a `UserError` if there is none. */
export async function chooseRemote(
  checkout: Checkout,
  all: readonly Remote[],
  { remote: named, choose }: ChooseRemote,
): Promise<Remote> {
  const names = all.map(({ name }) => name)
  const listed = names.length === 0 ? 'there is none' : `there is ${names.map(name => oneLine(name, 100)).join(', ')}`
  if (named !== null) {
    const found = all.find(({ name }) => name === named)
    if (found !== undefined) return found
    throw new UserError('CM1204', `This repository has no remote ${oneLine(named, 100)}: ${listed}.`)
  }
  const [only, another] = all
  if (only === undefined) throw new UserError('CM1204', 'This repository has no remote; add one with git remote add.')
  const usual = await remoteOfBranch(checkout, (await readHead(checkout.repository)).branch)
  const found = all.find(({ name }) => name === usual) ?? (another === undefined ? only : undefined)
  if (found !== undefined) return found
  const chosen = await choose(names)
  const one = all.find(({ name }) => name === chosen)
  if (one !== undefined) return one
  throw new UserError('CM1204', `This repository has several remotes (${names.join(', ')}); name one with --remote.`)
}
