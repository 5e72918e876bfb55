import { lstat, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { UserError } from '../base/errors.ts'
import { makeFolderInside, readRegularFile, whatIsThere, writeFileInside } from '../workspace/files/inside-directory.ts'
import {
  fromLatin1,
  type GitSetting,
  runGit,
  runGitOrThrow,
  splitAtNul,
  writeToPrivateGit,
} from '../workspace/git/git.ts'
import { writeReference } from '../workspace/git/objects.ts'
import { type PrivateGit, withOwnObjectsOnly, withoutIndex } from '../workspace/git/private-git.ts'
import { refName, type Savepoint, SavepointStore } from '../workspace/savepoints/savepoint-store.ts'

/**
 * A session as one commit, from which another machine continues it. Its tree has the newest savepoint (`work`), the agents'
 * files (`memory`) and codemachine's (`records`). Its parents are the previous such commit, that savepoint with its history,
 * and the checked-out commit.
 */
export interface Carried {
  commit: string
  session: string
  /** Epoch of the worker that created it. */
  epoch: number
  /** Number of events in the journal. */
  events: number
  /** Checked-out commit; null: none. */
  head: string | null
  savepoints: readonly CarriedSavepoint[]
}

export interface CarriedSavepoint {
  round: number
  commit: string
}

/** The input of a carried session. */
export interface ToCarry {
  session: string
  epoch: number
  events: number
  /** Round of the newest savepoint to include. */
  round: number
  /** Previous commit; null: this is the first. */
  previous: string | null
  /** Real paths of the folders to include, by their name in the commit; `leaves`: true for a path to omit. */
  folders: Readonly<Record<'memory' | 'records', { root: string; leaves(path: string): boolean }>>
  /** Unix time, ms. */
  at: number
}

/** Limits of the folders: files, bytes of one, bytes of all. */
const MOST_FILES = 20_000
const MOST_FILE_BYTES = 32 * 1024 * 1024
const MOST_BYTES = 256 * 1024 * 1024
const SUBJECT = 'codemachine: where this session stands'

/** Creates the commit in the private git directory, and returns its id. Omits links, and warns of too large files. */
export async function packSession(
  git: PrivateGit,
  what: ToCarry,
  onWarning: (warning: string) => void,
): Promise<string> {
  const { session, epoch, events, round, previous, folders, at } = what
  const savepoints = (await savepointsOf(git, session)).filter(each => each.round <= round)
  const newest = savepoints.at(-1)
  const head = newest?.head ?? null
  const ref = refOf(session)
  const message = Buffer.from(messageOf({ session, epoch, events, head, savepoints }))
  const [first, ...merged] = [previous, newest?.commit ?? null, head].filter(each => each !== null)
  const parts: Buffer[] = [
    Buffer.from(
      `reset ${ref}\ncommit ${ref}\ncommitter codemachine <codemachine@localhost> ${Math.floor(at / 1000)} +0000\ndata ${message.length}\n`,
    ),
    message,
    Buffer.from(
      `${first === undefined ? '' : `from ${first}\n`}${merged.map(id => `merge ${id}\n`).join('')}deleteall\n${
        newest === undefined ? '' : `M 040000 ${newest.tree} work\n`
      }`,
    ),
  ]
  let left = MOST_BYTES
  for (const [name, { root, leaves }] of Object.entries(folders)) {
    for (const path of await filesBelow(root, leaves)) {
      const read = await readRegularFile(join(root, path), MOST_FILE_BYTES)
      if (read.kind !== 'bytes') continue
      const { bytes } = read
      left -= bytes.length
      if (left < 0) {
        onWarning(
          `The agents' memory is larger than ${MOST_BYTES / 2 ** 20} MiB; another worker will not get the rest.`,
        )
        break
      }
      parts.push(
        Buffer.from(`M 100644 inline ${quoted(`${name}/${path}`)}\ndata ${bytes.length}\n`),
        bytes,
        Buffer.from('\n'),
      )
    }
  }
  parts.push(Buffer.from('\ndone\n'))
  const setting = withoutIndex(git)
  await writeToPrivateGit(git.gitDir, () =>
    runGitOrThrow(
      setting,
      ['fast-import', '--quiet', '--done', '--force', '--date-format=raw'],
      Buffer.concat(parts).toString('latin1'),
    ),
  )
  return (await runGitOrThrow(setting, ['rev-parse', '--verify', ref])).trim()
}

/** Returns the message of a commit that carries a session. */
export function messageOf({ session, epoch, events, head, savepoints }: Omit<Carried, 'commit'>): string {
  const lines = [
    `Session: ${session}`,
    `Epoch: ${epoch}`,
    `Events: ${events}`,
    ...(head === null ? [] : [`Head: ${head}`]),
    ...savepoints.map(({ round, commit }) => `Savepoint: ${round} ${commit}`),
  ]
  return `${SUBJECT}\n\n${lines.join('\n')}\n`
}

function refOf(session: string): string {
  return `refs/carried/${session}`
}

async function savepointsOf(git: PrivateGit, session: string): Promise<Savepoint[]> {
  const all = await new SavepointStore({ git }, () => {}).list()
  return all.filter(each => each.session === session).toSorted((a, b) => a.round - b.round)
}

/** Quotes a path for `fast-import`. */
function quoted(path: string): string {
  return `"${path.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`
}

/** Returns the plain files below a folder, relative to it; never through a link. */
async function filesBelow(root: string, leaves: (path: string) => boolean): Promise<string[]> {
  const found: string[] = []
  const look = async (folder: string): Promise<void> => {
    const entries = await readdir(join(root, folder), { withFileTypes: true }).catch(() => [])
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (found.length >= MOST_FILES || leaves(path)) continue
      if (entry.isDirectory()) await look(path)
      else if (entry.isFile()) found.push(path)
    }
  }
  if ((await lstat(root).catch(() => null))?.isDirectory()) await look('')
  return found
}

/** Parses a commit that carries a session; null: it carries none. Its objects are present. */
export async function readCarried(setting: GitSetting, commit: string): Promise<Carried | null> {
  const { ok, stdout } = await runGit(setting, ['cat-file', 'commit', commit])
  const message = ok ? fromLatin1(stdout.slice(stdout.indexOf('\n\n') + 2)) : ''
  const field = (name: string) => new RegExp(`^${name}: (.+)$`, 'm').exec(message)?.[1]
  const [session, epoch, events] = [field('Session'), Number(field('Epoch')), Number(field('Events'))]
  if (!message.startsWith(SUBJECT) || session === undefined || !Number.isInteger(epoch) || !Number.isInteger(events))
    return null
  const savepoints = [...message.matchAll(/^Savepoint: (\d{1,9}) ([0-9a-f]{40,64})$/gm)].map(([, round, id]) => ({
    round: Number(round),
    commit: id ?? '',
  }))
  return { commit, session, epoch, events, head: field('Head') ?? null, savepoints }
}

/** Returns the newest commit with at most `events` events, from `tip` back; null: there is none. */
export async function newestCarried(setting: GitSetting, tip: string, events: number): Promise<Carried | null> {
  const listed = await runGitOrThrow(setting, ['rev-list', '--first-parent', '--max-count=10000', tip])
  for (const commit of listed.split('\n')) {
    const carried = commit === '' ? null : await readCarried(setting, commit)
    // Before the first one are the repository's own commits.
    if (carried === null) return null
    // A commit without events only names the owner of a session that had not begun.
    if (carried.events > 0 && carried.events <= events) return carried
  }
  return null
}

/**
 * Unpacks a carried session into a private git directory and folders without it: its savepoints and its folders' files. The
 * private git directory already has the commit's objects.
 * @param folders real paths, by the names of `ToCarry`
 */
export async function unpackSession(
  git: PrivateGit,
  { commit, session, savepoints }: Carried,
  folders: Readonly<Record<'memory' | 'records', string>>,
): Promise<void> {
  const setting = withOwnObjectsOnly(git)
  await writeToPrivateGit(git.gitDir, async () => {
    await writeReference(git, refOf(session), commit)
    for (const { round, commit: id } of savepoints) await writeReference(git, refName({ session, round }), id)
  })
  for (const [name, root] of Object.entries(folders)) {
    const listed = await runGitOrThrow(setting, [
      'ls-tree',
      '-r',
      '-z',
      '--format=%(objectname) %(path)',
      commit,
      `${name}/`,
    ])
    for (const entry of splitAtNul(listed)) {
      const [, id = '', path = ''] = /^([0-9a-f]+) [^/]+\/(.+)$/s.exec(entry) ?? []
      const content = await runGitOrThrow(setting, ['cat-file', 'blob', id])
      const file = fromLatin1(path)
      const obstacle = await makeFolderInside(root, dirname(file))
      if (obstacle !== null)
        throw new UserError(
          'CM1114',
          `${join(root, obstacle.path)} ${whatIsThere(obstacle)}, so the session cannot be resumed here.`,
        )
      await writeFileInside(root, file, Buffer.from(content, 'latin1'))
    }
  }
}
