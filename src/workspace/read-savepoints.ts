import { runGit, runGitOrThrow } from './git-command.ts'
import { onOwnObjects, type PrivateGit } from './private-git.ts'
import { byAge, parseRef, type Savepoint } from './savepoint.ts'

/**
 * The savepoints of a private git directory, the oldest first.
 * @param onProblem told a sentence for each that is broken; it is left out
 */
export async function readSavepoints(git: PrivateGit, onProblem: (problem: string) => void): Promise<Savepoint[]> {
  const setting = onOwnObjects(git)
  const listed = await runGit(setting, ['for-each-ref', '--format=%(objectname) %(refname)', 'refs/savepoints'])
  const refs = listed.stdout.split('\n').flatMap(line => {
    const [, commit = '', ref = ''] = line.match(/^([0-9a-f]+) (.+)$/) ?? []
    const named = parseRef(ref)
    return named === null ? [] : [{ ...named, commit }]
  })
  const texts = await readCommits(git, [...new Set(refs.map(({ commit }) => commit))])
  const savepoints = refs.flatMap(ref => {
    const read = parseCommit(texts.get(ref.commit) ?? '')
    if (read === null) onProblem(`The savepoint ${ref.id} is broken, and left out: its commit cannot be read.`)
    return read === null ? [] : [{ ...ref, ...read }]
  })
  return savepoints.sort(byAge)
}

async function readCommits(git: PrivateGit, commits: readonly string[]): Promise<Map<string, string>> {
  if (commits.length === 0) return new Map()
  const setting = onOwnObjects(git)
  const batch = await runGit(setting, ['cat-file', '--batch'], commits.map(commit => `${commit}\n`).join(''))
  if (batch.ok) return parseBatch(batch.stdout)
  // git gives up at one that is damaged.
  const texts = new Map<string, string>()
  for (const commit of commits) {
    const { ok, stdout } = await runGit(setting, ['cat-file', 'commit', commit])
    if (ok) texts.set(commit, stdout)
  }
  return texts
}

/** As `cat-file --batch` writes it: a line that says how long the object is, the object, a newline. */
function parseBatch(output: string): Map<string, string> {
  const texts = new Map<string, string>()
  for (let at = 0; at < output.length; ) {
    const end = output.indexOf('\n', at)
    if (end === -1) break
    const [, id, type, size] = output.slice(at, end).match(/^([0-9a-f]+) (\w+) (\d+)$/) ?? []
    const length = size === undefined ? -1 : Number(size)
    if (id !== undefined && type === 'commit') texts.set(id, output.slice(end + 1, end + 1 + length))
    at = end + 1 + length + 1
  }
  return texts
}

function parseCommit(text: string): Pick<Savepoint, 'tree' | 'parent' | 'at' | 'head'> | null {
  const tree = text.match(/^tree ([0-9a-f]+)$/m)?.[1]
  const seconds = text.match(/^committer .* (\d{1,12}) \+0000$/m)?.[1]
  if (tree === undefined || seconds === undefined) return null
  return {
    tree,
    parent: text.match(/^parent ([0-9a-f]+)$/m)?.[1] ?? null,
    at: Number(seconds) * 1000,
    head: text.match(/^Head: ([0-9a-f]{40,64})$/m)?.[1] ?? null,
  }
}

/** The tree of the first savepoint in a chain, which may be older than the reference of round 0. */
export async function firstTree(git: PrivateGit, { commit, tree, parent }: Savepoint): Promise<string> {
  if (parent === null) return tree
  const args = ['log', '--max-parents=0', '--format=%T', '-1', commit]
  return (await runGitOrThrow(onOwnObjects(git), args)).trim()
}
