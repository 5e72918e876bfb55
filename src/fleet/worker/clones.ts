import { createHash } from 'node:crypto'
import { mkdir, readdir, rm, stat, statfs, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isNoRoom, UserError } from '../../base/errors.ts'
import { pathExists } from '../../platform/files.ts'
import { runProcess } from '../../platform/run-process.ts'
import { findGit } from '../../workspace/git/find-git.ts'
import { type GitSetting, withoutGitVariables } from '../../workspace/git/git.ts'
import { type Carried, messageOf, readCarried } from '../carried.ts'

/** Location and limits of a worker's clones. */
interface ClonesOptions {
  /** Absolute path of the worker's own folder. */
  root: string
  /** Number of mirrors to keep. */
  keep: number
  env: NodeJS.ProcessEnv
}

/** Thrown if a remote refuses or is unreachable: the session is returned to the queue. */
export class RemoteError extends Error {
  /** True if the remote did not answer or denied access: a later try or another worker may succeed. */
  readonly isAway: boolean

  constructor(message: string, isAway: boolean) {
    super(message)
    this.isAway = isAway
  }
}

/** Timeout of git with a remote, ms: a first clone is long. */
const REMOTE_MS = 60 * 60_000
const LOCAL_MS = 10 * 60_000
const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'
const OUTPUT_BYTES = 16 * 1024 * 1024
/** Least free space for a new clone, bytes. */
const LEAST_FREE_BYTES = 512 * 1024 * 1024

/** Returns the environment of git with a remote: no prompts, and a repository cannot name programs. */
export function remoteEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return {
    ...withoutGitVariables(env),
    GIT_TERMINAL_PROMPT: '0',
    GIT_ALLOW_PROTOCOL: 'https:http:ssh:file',
    GIT_SSH_COMMAND: `${env.GIT_SSH_COMMAND ?? 'ssh'} -oBatchMode=yes`,
    GIT_NO_LAZY_FETCH: '1',
    LC_ALL: 'C',
  }
}

/**
 * The repositories of a worker: a shared mirror of each, and a clone per session that borrows the mirror's objects. Agents
 * write only in the clone, so a repository never carries anything to another session.
 */
export class Clones {
  readonly #root: string
  readonly #env: NodeJS.ProcessEnv
  readonly #program: string
  readonly #withoutConfig: NodeJS.ProcessEnv
  /** Current action by mirror: one at a time. */
  readonly #busy = new Map<string, Promise<unknown>>()
  readonly #keep: number
  /** Sessions that borrow from a mirror, by its path. */
  readonly #users = new Map<string, Set<string>>()

  private constructor({ root, env, keep }: ClonesOptions, program: string) {
    this.#root = root
    this.#keep = keep
    this.#program = program
    this.#withoutConfig = { GIT_CONFIG_GLOBAL: join(root, 'none'), GIT_CONFIG_NOSYSTEM: '1', GIT_ATTR_NOSYSTEM: '1' }
    this.#env = remoteEnvironment(env)
  }

  static async open(options: ClonesOptions): Promise<Clones> {
    await mkdir(join(options.root, 'mirrors'), { recursive: true, mode: 0o700 })
    await mkdir(join(options.root, 'sessions'), { recursive: true, mode: 0o700 })
    return new Clones(options, await findGit(options.env, options.root))
  }

  /** Returns the absolute path of a session's clone. */
  folderOf(session: string): string {
    return join(this.#root, 'sessions', session)
  }

  mirrorOf(repo: string): string {
    return join(this.#root, 'mirrors', `${createHash('sha256').update(repo).digest('hex').slice(0, 24)}.git`)
  }

  /** Updates a repository's mirror for a session, which borrows from it until its removal, and returns the mirror's path. */
  async fetch(repo: string, session: string, signal: AbortSignal): Promise<string> {
    const mirror = this.mirrorOf(repo)
    this.#users.set(mirror, (this.#users.get(mirror) ?? new Set()).add(session))
    await this.#oneByOne(mirror, async () => {
      await this.#refuseFullDisk()
      if (!(await pathExists(join(mirror, 'HEAD'))))
        await this.local(['init', '--quiet', '--bare', '--template=', mirror], signal)
      const refs = ['+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*']
      await this.remote(
        [
          '--git-dir',
          mirror,
          'fetch',
          '--quiet',
          '--no-tags',
          '--force',
          '--prune',
          '--no-write-fetch-head',
          '--',
          repo,
          ...refs,
        ],
        signal,
      )
      const now = new Date()
      await utimes(mirror, now, now)
    })
    return mirror
  }

  /** Returns the commit of a branch, tag or commit; null: there is none. */
  async resolve(mirror: string, ref: string, signal: AbortSignal): Promise<string | null> {
    for (const name of [`refs/heads/${ref}`, `refs/tags/${ref}`, ref]) {
      const { exitCode, stdout } = await this.run(
        ['--git-dir', mirror, 'rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`],
        { signal, timeoutMs: LOCAL_MS },
      )
      if (exitCode === 0) return stdout.trim()
    }
    return null
  }

  async hasCommit(mirror: string, commit: string, signal: AbortSignal): Promise<boolean> {
    const args = ['--git-dir', mirror, 'cat-file', '-e', `${commit}^{commit}`]
    return (await this.run(args, { signal, timeoutMs: LOCAL_MS })).exitCode === 0
  }

  /** Returns the target of a remote reference; null: it does not exist. */
  async remoteRef(repo: string, ref: string, signal: AbortSignal): Promise<string | null> {
    return (await this.remoteRefs(repo, [ref], signal)).get(ref) ?? null
  }

  /** Returns the targets of several remote references, without missing ones. */
  async remoteRefs(repo: string, refs: readonly string[], signal: AbortSignal): Promise<Map<string, string>> {
    const listed = await this.remote(['ls-remote', '--quiet', '--', repo, ...refs], signal)
    const found = listed.split('\n').map(line => line.split('\t'))
    // Git lists all references with such an ending.
    return new Map(found.flatMap(([id = '', ref = '']) => (refs.includes(ref) ? [[ref, id]] : [])))
  }

  /** Fetches a reference of a remote into a mirror, under the same name. */
  async fetchRef(repo: string, ref: string, mirror: string, signal: AbortSignal): Promise<void> {
    await this.#oneByOne(mirror, () =>
      this.remote(
        [
          '--git-dir',
          mirror,
          'fetch',
          '--quiet',
          '--no-tags',
          '--force',
          '--no-write-fetch-head',
          '--',
          repo,
          `+${ref}:${ref}`,
        ],
        signal,
      ),
    )
  }

  /** Creates the clone of a session, with this commit checked out on its own branch. Removes an existing one first. */
  async clone(mirror: string, session: string, commit: string, signal: AbortSignal): Promise<string> {
    const folder = this.folderOf(session)
    await rm(folder, { recursive: true, force: true })
    await this.#refuseFullDisk()
    await this.local(['init', '--quiet', '--template=', `--initial-branch=${branchOf(session)}`, folder], signal)
    const objects = join(folder, '.git', 'objects', 'info')
    await mkdir(objects, { recursive: true })
    await writeFile(join(objects, 'alternates'), `${join(mirror, 'objects')}\n`)
    await this.local(['-C', folder, 'reset', '--quiet', '--hard', commit, '--'], signal)
    return folder
  }

  /** Returns the git setting to read commits of a mirror. */
  setting(mirror: string): GitSetting {
    return {
      program: this.#program,
      directory: this.#root,
      env: { ...this.#env, ...this.#withoutConfig, GIT_DIR: mirror },
    }
  }

  /**
   * Creates a commit that marks a session's new epoch and carries the same as `from`; null: nothing yet. The previous worker
   * never knows this commit, even if it has pushed nothing yet (`tip` is null). So it cannot push over a reference that is
   * at it.
   */
  async marker(
    mirror: string,
    { from, tip, session, epoch }: { from: Carried | null; tip: string | null; session: string; epoch: number },
    signal: AbortSignal,
  ): Promise<string> {
    const message = messageOf({
      session,
      epoch,
      events: from?.events ?? 0,
      head: from?.head ?? null,
      savepoints: from?.savepoints ?? [],
    })
    const tree = from === null ? EMPTY_TREE : `${from.commit}^{tree}`
    const parent = from?.commit ?? tip
    const hash = await this.local(
      ['--git-dir', mirror, 'rev-parse', '--verify', '--end-of-options', tree],
      signal,
    ).catch(() => this.local(['--git-dir', mirror, 'hash-object', '-w', '-t', 'tree', '/dev/null'], signal))
    const parents = parent === null ? [] : [parent]
    return await this.#commit(mirror, { tree: hash.trim(), parents, message }, {}, signal)
  }

  /**
   * Returns the result commit of a session: the checked-out commit, or one on top with the uncommitted changes. Null:
   * nothing was ever committed.
   * @param carried a commit of `packSession`, in that git directory
   */
  async result(
    gitDir: string,
    carried: string,
    objects: string | undefined,
    session: string,
    signal: AbortSignal,
  ): Promise<string | null> {
    const env = objects === undefined ? {} : { GIT_ALTERNATE_OBJECT_DIRECTORIES: objects }
    const read = await readCarried({ ...this.setting(gitDir), env: { ...this.setting(gitDir).env, ...env } }, carried)
    const tree = await this.#revision(gitDir, `${carried}:work`, env, signal)
    const head = read?.head ?? null
    if (tree === null) return head
    if (head !== null && (await this.#revision(gitDir, `${head}^{tree}`, env, signal)) === tree) return head
    const parents = head === null ? [] : [head]
    return await this.#commit(gitDir, { tree, parents, message: `What ${session} has left uncommitted\n` }, env, signal)
  }

  /** Pushes a commit if the reference is at its expected commit, and `held` at its own; false: not so. */
  async push(
    gitDir: string,
    {
      remote,
      ref,
      commit,
      expected,
      objects,
      held,
    }: {
      remote: string
      ref: string
      commit: string
      expected: string | null
      objects?: string | undefined
      held?: { ref: string; commit: string } | undefined
    },
    signal: AbortSignal,
  ): Promise<boolean> {
    const leases = [`--force-with-lease=${ref}:${expected ?? ''}`]
    if (held !== undefined) leases.push('--atomic', `--force-with-lease=${held.ref}:${held.commit}`)
    const args = [
      '--git-dir',
      gitDir,
      'push',
      '--porcelain',
      '--quiet',
      '--no-verify',
      '--no-follow-tags',
      '--no-signed',
      '--recurse-submodules=no',
      ...leases,
      '--',
      remote,
      `${commit}:${ref}`,
      ...(held === undefined ? [] : [`${held.commit}:${held.ref}`]),
    ]
    const env = objects === undefined ? {} : { GIT_ALTERNATE_OBJECT_DIRECTORIES: objects }
    const { exitCode, stdout, stderr } = await this.run(args, { signal, timeoutMs: REMOTE_MS, env })
    if (exitCode === 0) return true
    signal.throwIfAborted()
    if (/stale info|\[rejected\]|cannot lock ref|failed to update ref/.test(stdout + stderr)) return false
    throw new RemoteError(wrongOf(stderr || stdout), true)
  }

  /** Adds a note to a commit, on top of the remote's current notes; false: these changed meanwhile. */
  async note(
    gitDir: string,
    {
      remote,
      ref,
      commit,
      text,
      objects,
    }: { remote: string; ref: string; commit: string; text: string; objects?: string | undefined },
    signal: AbortSignal,
  ): Promise<boolean> {
    const there = await this.remoteRef(remote, ref, signal)
    if (there === null) await this.local(['--git-dir', gitDir, 'update-ref', '-d', ref], signal)
    else await this.fetchRef(remote, ref, gitDir, signal)
    const alternates = objects === undefined ? {} : { GIT_ALTERNATE_OBJECT_DIRECTORIES: objects }
    const { exitCode, stderr } = await this.run(
      ['--git-dir', gitDir, 'notes', `--ref=${ref}`, 'add', '-f', '-F', '-', commit],
      { signal, timeoutMs: LOCAL_MS, env: { ...this.#withoutConfig, ...AUTHOR, ...alternates }, input: text },
    )
    if (exitCode !== 0) throw new UserError('CM1114', `git notes failed: ${wrongOf(stderr)}`, { exitCode: 4 })
    return await this.push(gitDir, { remote, ref, commit: ref, expected: there, objects }, signal)
  }

  /** Fetches a commit of a mirror with all its objects into a git directory. */
  async fetchInto(gitDir: string, mirror: string, commit: string, signal: AbortSignal): Promise<void> {
    await this.local(['--git-dir', mirror, 'update-ref', `refs/fetch/${commit}`, commit], signal)
    await this.local(
      ['--git-dir', gitDir, 'fetch', '--quiet', '--no-tags', '--no-write-fetch-head', mirror, `refs/fetch/${commit}`],
      signal,
    )
    await this.local(['--git-dir', mirror, 'update-ref', '-d', `refs/fetch/${commit}`], signal)
  }

  async #revision(gitDir: string, name: string, env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<string | null> {
    const args = ['--git-dir', gitDir, 'rev-parse', '--verify', '--quiet', '--end-of-options', name]
    const { exitCode, stdout } = await this.run(args, { signal, timeoutMs: LOCAL_MS, env })
    return exitCode === 0 ? stdout.trim() : null
  }

  async #commit(
    gitDir: string,
    { tree, parents, message }: { tree: string; parents: readonly string[]; message: string },
    env: NodeJS.ProcessEnv,
    signal: AbortSignal,
  ): Promise<string> {
    const args = [
      '--git-dir',
      gitDir,
      'commit-tree',
      '--no-gpg-sign',
      tree,
      ...parents.flatMap(each => ['-p', each]),
      '-m',
      message,
    ]
    const { exitCode, stdout, stderr } = await this.run(args, {
      signal,
      timeoutMs: LOCAL_MS,
      env: { ...env, ...AUTHOR },
    })
    if (exitCode !== 0) throw new UserError('CM1114', `git commit-tree failed: ${wrongOf(stderr)}`, { exitCode: 4 })
    return stdout.trim()
  }

  /** Removes the leftovers of a session. */
  async remove(session: string): Promise<void> {
    await rm(this.folderOf(session), { recursive: true, force: true })
    for (const [mirror, users] of this.#users) if (users.delete(session) && users.size === 0) this.#users.delete(mirror)
  }

  /** Resolves with true if there is no room for another clone. */
  async isFull(): Promise<boolean> {
    const { bavail, bsize } = await statfs(this.#root)
    return bavail * bsize < LEAST_FREE_BYTES
  }

  /** Removes the least recently used mirrors above the limit, except those that a session borrows from. */
  async prune(): Promise<void> {
    const folder = join(this.#root, 'mirrors')
    const found = await Promise.all(
      (await readdir(folder)).map(async name => ({
        path: join(folder, name),
        at: (await stat(join(folder, name))).mtimeMs,
      })),
    )
    const unused = found.filter(({ path }) => !this.#users.has(path)).toSorted((a, b) => b.at - a.at)
    const kept = Math.max(0, this.#keep - (found.length - unused.length))
    for (const { path } of unused.slice(kept)) await rm(path, { recursive: true, force: true })
  }

  async #refuseFullDisk(): Promise<void> {
    if (await this.isFull())
      throw new FullDisk(`Less than ${LEAST_FREE_BYTES / 2 ** 20} MiB are free at ${this.#root}.`)
  }

  /** Runs git locally without the person's configuration, because a repository could request its filters. */
  async local(args: readonly string[], signal: AbortSignal): Promise<string> {
    const env = this.#withoutConfig
    const { exitCode, stdout, stderr } = await this.run(args, { signal, timeoutMs: LOCAL_MS, env })
    if (exitCode === 0) return stdout
    signal.throwIfAborted()
    if (isNoRoom(new Error(stderr))) throw new FullDisk(wrongOf(stderr))
    throw new UserError('CM1114', `git ${nameOf(args)} failed: ${wrongOf(stderr)}`, { exitCode: 4 })
  }

  /** Runs git with a remote; throws `RemoteError` if that fails. */
  async remote(args: readonly string[], signal: AbortSignal): Promise<string> {
    const { exitCode, stdout, stderr, failure } = await this.run(args, { signal, timeoutMs: REMOTE_MS })
    if (exitCode === 0) return stdout
    signal.throwIfAborted()
    if (isNoRoom(new Error(stderr))) throw new FullDisk(wrongOf(stderr))
    const why = failure === 'timeout' ? 'it took more than an hour' : wrongOf(stderr)
    throw new RemoteError(
      why,
      failure === 'timeout' || !/not found|does not exist|couldn't find remote ref/i.test(stderr),
    )
  }

  run(
    args: readonly string[],
    {
      signal,
      timeoutMs,
      env = {},
      input,
    }: { signal: AbortSignal; timeoutMs: number; env?: NodeJS.ProcessEnv; input?: string },
  ) {
    const all = [
      '-c',
      `core.hooksPath=${join(this.#root, 'none')}`,
      '-c',
      'maintenance.auto=false',
      '-c',
      'gc.auto=0',
      '-c',
      'core.longpaths=true',
      ...args,
    ]
    return runProcess(this.#program, all, {
      directory: this.#root,
      env: { ...this.#env, ...env },
      encoding: 'utf8',
      outputLimit: OUTPUT_BYTES,
      timeoutMs,
      signal,
      ...(input === undefined ? {} : { input: Buffer.from(input) }),
    })
  }

  async #oneByOne<T>(mirror: string, work: () => Promise<T>): Promise<T> {
    const before = this.#busy.get(mirror) ?? Promise.resolve()
    const done = before.catch(() => {}).then(work)
    this.#busy.set(mirror, done)
    return await done
  }
}

/** Author of all commits of a worker. */
const AUTHOR = {
  GIT_AUTHOR_NAME: 'codemachine',
  GIT_AUTHOR_EMAIL: 'codemachine@localhost',
  GIT_COMMITTER_NAME: 'codemachine',
  GIT_COMMITTER_EMAIL: 'codemachine@localhost',
}

/** Thrown if no worker can run a session. */
export class Hopeless extends Error {}

/** Thrown if there is no room for a clone: the worker then accepts nothing more. */
export class FullDisk extends Error {}

/** Returns the work and result branch of a session. */
export function branchOf(session: string): string {
  return `codemachine/${session}`
}

/** Returns git's error, which advice may follow. */
function wrongOf(said: string): string {
  const lines = said.trim().split('\n')
  const wrong = lines.find(line => /^(fatal|error): /.test(line)) ?? lines.at(-1) ?? ''
  return wrong.replace(/^(fatal|error): /, '').slice(0, 500) || 'git said nothing'
}

function nameOf(args: readonly string[]): string {
  return args.find((arg, at) => !arg.startsWith('-') && args[at - 1] !== '-C' && args[at - 1] !== '--git-dir') ?? ''
}
