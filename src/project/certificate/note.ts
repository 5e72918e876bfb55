import { UserError } from '../../base/errors.ts'
import { shortHash } from '../../workspace/git/commits.ts'
import { toLatin1, withVariables } from '../../workspace/git/git.ts'
import { type Checkout, gitErrorLine, runGitIn } from '../../workspace/worktree/worktree.ts'

/** The notes that hold certificates. They are never pushed. */
const NOTES = ['notes', '--ref=refs/notes/codemachine']
/** The author of a note, whoever the person is. */
const AUTHOR = Object.fromEntries(
  ['AUTHOR', 'COMMITTER'].flatMap(who => [
    [`GIT_${who}_NAME`, 'codemachine'],
    [`GIT_${who}_EMAIL`, 'codemachine@localhost'],
  ]),
)

/** Puts a bundle on a commit, in the place of an earlier one. */
export async function writeNote({ setting }: Pick<Checkout, 'setting'>, commit: string, text: string): Promise<void> {
  const written = { setting: withVariables(setting, AUTHOR) }
  const result = await runGitIn(written, [...NOTES, 'add', '-f', '-F', '-', commit], toLatin1(text))
  if (!result.ok)
    throw new UserError('CM0710', `git could not put the note on ${shortHash(commit)}: ${gitErrorLine(result)}.`)
}
