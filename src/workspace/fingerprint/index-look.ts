import { join } from 'node:path'
import { UserError } from '../../base/errors.ts'
import { fromLatin1, GitError, readHead, runGit, runGitOrThrow, splitAtNul, toLatin1 } from '../git/git.ts'
import { type IndexFile, readIndexFile } from '../git/index-file.ts'
import { EMPTY_BLOB, EMPTY_TREE } from '../git/objects.ts'
import { type PrivateGit, removeIndex } from '../git/private-git.ts'
import type { IndexDifferences } from '../git/trees.ts'
import { isBelow } from '../protected-files.ts'
import { UNREAD_MODE } from './unread-files.ts'

interface IndexLookOptions {
  /** The private git for one look. */
  git: () => PrivateGit
  /** Exclude rules of what is never included; `own`: but for what codex keeps for itself. */
  rules: readonly string[]
  own: readonly string[]
  /** `.codex-flow/runtime`, latin1, relative to git's top. */
  runtime: readonly string[]
  /** The file of exclude rules by which ignored files count or not; null: by what is ignored now. */
  ignoredBy: () => string | null
  /** Told each line that git warns with. */
  warn: (line: string) => void
}

/** What counts by the ignore rules of now, and what they ignore: latin1 paths relative to git's top. */
export interface IgnoredNow {
  files: readonly string[]
  /** A folder of which nothing counts ends in `/`. */
  ignored: readonly string[]
}

/** The index of a private git directory against its work directory, as git compares them. Paths are latin1, relative to git's top. */
export class IndexLook {
  readonly #options: IndexLookOptions

  constructor(options: IndexLookOptions) {
    this.#options = options
  }

  get rules(): readonly string[] {
    return this.#options.rules
  }

  get #git(): PrivateGit {
    return this.#options.git()
  }

  /**
   * Compares tracked files by stat only, in threads. A file that was merely touched is recognized when it is staged. What
   * is not read is always among those that are present.
   */
  async known(): Promise<IndexDifferences & { unread: ReadonlyMap<string, string> }> {
    const args = ['diff-files', '--raw', '--no-abbrev', '-z', '--no-renames', '--ignore-submodules=dirty']
    const gone: string[] = []
    const present: string[] = []
    const unread = new Map<string, string>()
    const fields = splitAtNul(await this.list(args))
    for (let index = 0; index + 1 < fields.length; index += 2) {
      const [mode, , id = '', , status] = fields[index]?.split(' ') ?? []
      const path = fields[index + 1] ?? ''
      if (mode === `:${UNREAD_MODE}`) unread.set(path, id)
      ;(status === 'D' ? gone : present).push(path)
    }
    return { gone, present, unread }
  }

  /** The files that are not in it and count; a nested repository that is not open as one path that ends in `/`. */
  async untracked(): Promise<string[]> {
    return await this.#notInIndex([])
  }

  /** The folders of which nothing is in it, and that are not ignored, as paths that end in `/`; none that lies in another one. */
  async folders(): Promise<string[]> {
    return (await this.#notInIndex(['--directory'])).filter(path => path.endsWith('/'))
  }

  /** Those of `untracked` that count only by the exclude rules of a file. */
  async addedByRules(): Promise<string[]> {
    const ignoredBy = this.#options.ignoredBy()
    return ignoredBy === null ? [] : await this.#notInIndexBy(`--exclude-from=${ignoredBy}`, [])
  }

  async #notInIndex(options: readonly string[]): Promise<string[]> {
    const ignoredBy = this.#options.ignoredBy()
    const by = ['--exclude-standard', ...(ignoredBy === null ? [] : [`--exclude-from=${ignoredBy}`])]
    return [...new Set((await Promise.all(by.map(each => this.#notInIndexBy(each, options)))).flat())]
  }

  async #notInIndexBy(by: string, options: readonly string[]): Promise<string[]> {
    return splitAtNul(await this.list(['ls-files', '-o', '-z', ...options, by, ...this.rules, ...this.within]))
  }

  /** Takes out of the index what is ignored now, but for what the person has committed. */
  async forgetIgnored(): Promise<IgnoredNow> {
    const args = ['ls-files', '-c', '-o', '-i', '-t', '--directory', '-z', '--exclude-standard']
    const found = splitAtNul(await this.list([...args, ...this.rules, ...this.within]))
    const isOther = (entry: string) => entry.startsWith('? ')
    await this.#takeOut(found.filter(entry => !isOther(entry)).map(pathOf))
    return { files: await this.#files(), ignored: found.filter(isOther).map(pathOf) }
  }

  async #takeOut(ignored: readonly string[]): Promise<void> {
    if (ignored.length === 0) return
    const committed = new Set((await this.committed()).map(entry => entry.slice(entry.indexOf('\t') + 1)))
    const gone = ignored.filter(path => !committed.has(path))
    const force = ['update-index', '--force-remove', '-z', '--stdin']
    await runGitOrThrow(this.#git.setting, force, gone.map(path => `${path}\0`).join(''))
  }

  async #files(): Promise<string[]> {
    const read = this.read()?.files.map(({ path }) => path)
    const within = toLatin1(this.#git.prefix)
    return (read ?? splitAtNul(await this.list(['ls-files', '-z']))).filter(path => path.startsWith(within))
  }

  /** Git arguments that keep a command to the work directory. */
  get within(): readonly string[] {
    const { prefix } = this.#git
    return prefix === '' ? [] : ['--', prefix]
  }

  /** What is in none of the files that count: a folder of which nothing counts ends in `/`. */
  async leftOut({ setting }: PrivateGit): Promise<string[]> {
    const { own } = this.#options
    const args = ['ls-files', '-o', '-z', '--directory', '--no-empty-directory', ...own, ...this.within]
    // Nothing hangs on it: what git would wait at is the next fingerprint's to say.
    const listed = await runGit(setting, args).catch((error: unknown) => {
      if (error instanceof UserError) return null
      throw error
    })
    return listed?.ok ? splitAtNul(listed.stdout) : []
  }

  /** The files of the person's commit, as `git ls-tree` lists them. */
  async committed(): Promise<string[]> {
    const { repository, setting } = this.#git
    const commit = repository === null ? null : (await readHead(repository)).commit
    if (commit === null) return []
    const { ok, stdout } = await runGit(setting, ['ls-tree', '-r', '-z', '--full-tree', commit, ...this.within])
    const { runtime } = this.#options
    const isRuntime = (entry: string) => runtime.some(each => isBelow(entry.slice(entry.indexOf('\t') + 1), each))
    return splitAtNul(ok ? stdout : '').filter(entry => !entry.startsWith('160000 ') && !isRuntime(entry))
  }

  /** The index, where it can be read here. */
  read(): IndexFile | null {
    const { gitDir, objectFormat, setting } = this.#git
    return readIndexFile(setting.env.GIT_INDEX_FILE ?? join(gitDir, 'index'), objectFormat)
  }

  /** Writes the tree of the work directory in the index, and answers its id. @param isStored whether an object is known to be there */
  async writeTree(isStored: (id: string) => boolean): Promise<string> {
    const { setting, prefix, objectFormat } = this.#git
    const { trees = [] } = (prefix === '' ? this.read() : null) ?? {}
    if (trees[0] !== undefined && trees.every(isStored)) return trees[0]
    const args = ['write-tree', ...(prefix === '' ? [] : [`--prefix=${prefix}`])]
    const result = await runGit(setting, args)
    if (result.ok) return result.stdout.trim()
    if (prefix !== '' && /prefix .* not found/s.test(result.stderr)) return EMPTY_TREE[objectFormat]
    throw new GitError(args, result)
  }

  /**
   * Git lists the files of a nested repository only if the index has an entry there. This adds a placeholder, which the
   * next index update removes. The nested repository's config is never read this way.
   */
  async openNested(folders: readonly string[]): Promise<void> {
    const empty = EMPTY_BLOB[this.#git.objectFormat]
    await this.addEntries(folders.map(folder => `100644 blob ${empty}\t${folder}${PLACEHOLDER}`))
  }

  /** Adds the files of the person's commit to a new index: they count even if an ignore rule matches them. */
  async seed(): Promise<void> {
    const files = await this.committed()
    if (files.length > 0) await this.addEntries(files)
  }

  /** Has every file that was in the index be read again: ignored ones, too, which no look finds. */
  async beginAnew(): Promise<void> {
    const git = this.#git
    const { ok, stdout } = await runGit(git.setting, ['ls-files', '-z'])
    await removeIndex(git)
    if (!ok || stdout === '') return
    const empty = EMPTY_BLOB[git.objectFormat]
    await this.addEntries(splitAtNul(stdout).map(path => `100644 blob ${empty}\t${path}`))
  }

  /** Adds entries, as `update-index --index-info` reads them. */
  async addEntries(entries: readonly string[]): Promise<void> {
    const input = entries.map(entry => `${entry}\0`).join('')
    await runGitOrThrow(this.#git.setting, ['update-index', '-z', '--index-info'], input)
  }

  /** Runs a command, says what it warns of, and answers what it printed; throws a `GitError` if it fails. */
  async list(args: readonly string[]): Promise<string> {
    const result = await runGit(this.#git.setting, args)
    if (!result.ok) throw new GitError(args, result)
    for (const line of result.stderr.split('\n', MOST_WARNINGS)) if (line !== '') this.#options.warn(fromLatin1(line))
    return result.stdout
  }
}

/** Of an entry of `ls-files -t`: a letter and a space come before it. */
function pathOf(entry: string): string {
  return entry.slice(2)
}

const MOST_WARNINGS = 20
const PLACEHOLDER = '.codemachine-looks-in-here'
