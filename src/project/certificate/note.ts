import { UserError } from '../../base/errors.ts'
import { CERTIFICATE_BYTES } from '../../core/rules/certificate.ts'
import { shortHash } from '../../workspace/git/commits.ts'
import { fromLatin1, toLatin1, withVariables } from '../../workspace/git/git.ts'
import { type Checkout, gitErrorLine, runGitIn, runGitOrUserError } from '../../workspace/worktree/worktree.ts'

/** Notes ref of the certificates. */
export const NOTES_REF = 'refs/notes/codemachine'
const NOTES = ['notes', `--ref=${NOTES_REF}`]
/** Author of a note, independent of the person's git identity. */
const AUTHOR = Object.fromEntries(
  ['AUTHOR', 'COMMITTER'].flatMap(who => [
    [`GIT_${who}_NAME`, 'codemachine'],
    [`GIT_${who}_EMAIL`, 'codemachine@localhost'],
  ]),
)
const MOST_COMMITS = 500

/** Adds a bundle to a commit as a note, and replaces an earlier one. */
export async function writeNote({ setting }: Pick<Checkout, 'setting'>, commit: string, text: string): Promise<void> {
  const written = { setting: withVariables(setting, AUTHOR) }
  const result = await runGitIn(written, [...NOTES, 'add', '-f', '-F', '-', commit], toLatin1(text))
  if (!result.ok)
    throw new UserError('CM0710', `git could not put the note on ${shortHash(commit)}: ${gitErrorLine(result)}.`)
}

/** Returns the newest bundle on HEAD or one of the 500 commits before it. Throws a `UserError` if none has one. */
export async function readNote(checkout: Pick<Checkout, 'setting'>): Promise<{ commit: string; text: string }> {
  const log = await runGitOrUserError(checkout, ['log', `-${MOST_COMMITS}`, '--format=%H'], 'read the history')
  const listed = await runGitIn(checkout, [...NOTES, 'list'])
  const noted = new Set(listed.stdout.split('\n').map(line => line.split(' ')[1] ?? ''))
  noted.delete('')
  const commit = log.split('\n').find(each => noted.has(each))
  if (commit === undefined)
    throw new UserError(
      'CM0710',
      noted.size === 0
        ? 'No commit here has a note of codemachine; fetch the notes, or name a file with --certificate.'
        : `Neither HEAD nor a commit before it has a note of codemachine; other commits have, such as ${shortHash([...noted][0] ?? '')}.`,
      { hint: 'git fetch origin refs/notes/codemachine:refs/notes/codemachine' },
    )
  const note = await runGitIn(checkout, [...NOTES, 'show', commit])
  if (note.ok && note.stdout.length <= CERTIFICATE_BYTES) return { commit, text: fromLatin1(note.stdout) }
  const why = note.ok ? `longer than ${CERTIFICATE_BYTES} bytes` : gitErrorLine(note)
  throw new UserError('CM0703', `The note on ${shortHash(commit)} cannot be read: ${why}.`)
}
