import { stampOf } from '../../platform/files.ts'
import { splitAtNul } from '../git/git.ts'
import { readIndexFile } from '../git/index-file.ts'
import type { LooseObjects } from '../git/loose-objects.ts'
import type { PrivateGit } from '../git/private-git.ts'
import type { IndexDifferences } from '../git/trees.ts'
import { KnownFiles } from './known-files.ts'
import { KnownFolders, type KnownLook } from './known-folders.ts'

/** What a fingerprint asks git where the memory does not know. Paths are latin1, relative to git's top. */
export interface KnownTreeGit {
  git: PrivateGit
  objects: LooseObjects
  /** Lists the files that are not in the index and count; with `folders`, a folder of which the index has nothing as one path with `/`. */
  list(what: 'files' | 'folders'): Promise<string[]>
  /** What counts though it is ignored, and is not in the index. */
  listHidden(): Promise<readonly string[]>
  /**
   * What differs from the index; with `files-and-names` also the files that are not in it and count. Null where files are among it
   * whose content is not read.
   */
  lookAtIndex(what: 'files' | 'files-and-names'): Promise<IndexDifferences | null>
  /** Runs a git command, and answers what it prints; `input`: for its stdin. */
  run(args: readonly string[], input?: string): Promise<string>
  /** Whether a file that git does not ignore is no work of anybody's. */
  isPassedOver(path: string): boolean
  /** Absolute paths of files whose rules decide, too, what counts. */
  rules: readonly string[]
  /** The size of the largest file whose content is read, bytes. */
  maxFileSize: number
}

/** A fingerprint, and what differs from the one before: latin1 paths, relative to the work directory, in git's order. */
export interface KnownChange {
  tree: string
  changed: readonly string[]
}

/**
 * The last fingerprint in memory. The next one looks at the folders itself, and asks git only about names that have come. So it
 * looks at the files of a small work directory; at those of a large one git looks, in threads, and what has changed is read here.
 * Whatever is not as it can be known here is git's to find out: then this is given up, and made anew from its index.
 */
export class KnownTree {
  readonly #files: KnownFiles
  /** Null: git lists the names, too, for there are too many folders, or one cannot be read. */
  readonly #folders: KnownFolders | null
  readonly #isSmall: boolean
  readonly #prefix: string
  #rules: string | null = null
  #isNew = true
  readonly #passedOver = new Set<string>()

  private constructor(files: KnownFiles, folders: KnownFolders | null, isSmall: boolean, { prefix }: PrivateGit) {
    this.#files = files
    this.#folders = folders
    this.#isSmall = isSmall
    this.#prefix = prefix === '' ? '' : Buffer.from(prefix, 'utf8').toString('latin1')
  }

  /** Makes it of an index of which `tree` is the fingerprint; null if that cannot be done. */
  static async open(ways: KnownTreeGit, index: string, tree: string): Promise<KnownTree | null> {
    const { git, objects, maxFileSize } = ways
    const read = readIndexFile(index, git.objectFormat)
    if (read === null) return null
    const prefix = Buffer.from(git.prefix, 'utf8').toString('latin1')
    const [trees, counting] = await Promise.all([
      ways.run(['ls-tree', '-r', '-d', '-z', '--full-tree', tree]),
      ways.list('folders'),
    ])
    const files = new KnownFiles(
      {
        ...read,
        files: read.files
          .filter(({ path }) => path.startsWith(prefix))
          .map(file => ({ ...file, path: file.path.slice(prefix.length) })),
      },
      parseTrees(trees, tree),
      {
        directory: `${git.setting.directory}/${git.prefix}`.replace(/\/+$/, ''),
        objects,
        maxFileSize,
      },
    )
    const folders = new KnownFolders(files)
    const areKnown = folders.register(countsIn(inside(prefix, counting)))
    const isSmall = areKnown && files.count <= MOST_FILES && folders.count <= MOST_FOLDERS
    return new KnownTree(files, areKnown ? folders : null, isSmall, git)
  }

  /** The next fingerprint; null if git has to take it. */
  async take(ways: KnownTreeGit): Promise<KnownChange | null> {
    const isKnown = await (this.#folders === null ? this.#lookByGit(ways) : this.#look(this.#folders, ways))
    return isKnown ? { tree: this.#files.writeTree(), changed: this.#files.takeChanged() } : null
  }

  /** Has the index say what is known here. */
  async flush({ git: { objectFormat }, run }: Pick<KnownTreeGit, 'git' | 'run'>): Promise<void> {
    const { pending } = this.#files
    if (pending.size === 0) return
    const none = '0'.repeat(objectFormat === 'sha256' ? 64 : 40)
    const gone = [...pending].flatMap(([path, file]) => (file === null ? [`0 ${none}\t${this.#prefix}${path}\0`] : []))
    const there = [...pending].flatMap(([path, file]) =>
      file === null ? [] : [`${file.mode} ${file.id} 0\t${this.#prefix}${path}\0`],
    )
    await run(['update-index', '--replace', '-z', '--index-info'], [...gone, ...there].join(''))
    this.#files.forgetPending()
  }

  /**
   * What no fingerprint includes, as `Fingerprints.leftOut`: latin1 paths relative to git's top; null if git has to say.
   * @param isNever whether a path is none of the work directory
   */
  leftOut(isNever: (path: string) => boolean): string[] | null {
    const found = this.#folders?.leftOut(path => isNever(this.#prefix + path)) ?? null
    return found === null ? null : found.map(path => this.#prefix + path)
  }

  /** With the names known here; false if git has to look. */
  async #look(folders: KnownFolders, ways: KnownTreeGit): Promise<boolean> {
    const seen = await this.#lookAtFiles(folders, ways)
    if (seen === null) return false
    const rules = rulesNow(folders, ways)
    const isSameRules = this.#isNew || (rules !== null && rules === this.#rules)
    const isWork = [...this.#passedOver].some(path => !ways.isPassedOver(this.#prefix + path))
    const isToList = this.#isNew || !isSameRules || isWork || seen.hasNewFiles || seen.newFolders.length > 0
    // What has come and is ignored since is found in the index alone: by git, and by the next run.
    if (isToList && (this.#isMisleading() || !isSameRules)) await this.flush(ways)
    if (!isSameRules || seen.newFolders.length > 0) {
      const counts = countsIn(this.#inside(await ways.list('folders')))
      if (!folders.admit(isSameRules ? seen.newFolders : folders.passedOver(), counts)) return false
    }
    const [listed, hidden] = await Promise.all([isToList ? ways.list('files') : null, ways.listHidden()])
    const isAdded = this.#add([...this.#worked(listed, ways), ...this.#inside(hidden)])
    if (!isAdded || (this.#isSmall && this.#files.count > MOST_FILES)) return false
    // Git compares the files of a large one with the index, at the next look.
    if (!this.#isSmall && this.#isMisleading()) await this.flush(ways)
    this.#rules = rules
    this.#isNew = false
    return true
  }

  /** Looks at files and folders, and reads what has changed of those that are known; null if git has to. */
  async #lookAtFiles(folders: KnownFolders, ways: KnownTreeGit): Promise<KnownLook | null> {
    const [byGit, seen] = await Promise.all([
      this.#isSmall ? NOTHING : ways.lookAtIndex('files'),
      folders.look(this.#isSmall ? 'names-and-files' : 'names'),
    ])
    if (byGit === null || seen === null) return null
    const gone = this.#inside(byGit.gone)
    for (const path of gone) folders.readNamesAgain(path)
    for (const path of [...seen.gone, ...gone]) this.#files.forget(path)
    folders.drop(seen.lost)
    return this.#files.readAgain(seen.changed) && this.#readDiffering(byGit.present) ? seen : null
  }

  /** Whether git would list other names than there are: the index has some that have been taken out here. */
  #isMisleading(): boolean {
    return this.#files.pending.size > MOST_PENDING || [...this.#files.pending.values()].includes(null)
  }

  /** Those of the files that git does not ignore that are somebody's work; null: they are the same as before. */
  #worked(listed: readonly string[] | null, { isPassedOver }: KnownTreeGit): string[] {
    if (listed === null) return []
    this.#passedOver.clear()
    return this.#inside(listed).filter(path => {
      const isPassed = !path.endsWith('/') && isPassedOver(this.#prefix + path)
      if (isPassed) this.#passedOver.add(path)
      return !isPassed
    })
  }

  /** Reads those that are not known as they are; false as of `readAgain`, and for a repository that git has to open. */
  #add(paths: readonly string[]): boolean {
    return (
      !paths.some(path => path.endsWith('/')) &&
      this.#files.readAgain(paths.filter(path => !this.#files.isAsKnown(path)))
    )
  }

  /** Of a large work directory where git lists the names, too. */
  async #lookByGit(ways: KnownTreeGit): Promise<boolean> {
    const [seen, hidden] = await Promise.all([ways.lookAtIndex('files-and-names'), ways.listHidden()])
    if (seen === null) return false
    for (const path of this.#inside(seen.gone)) this.#files.forget(path)
    if (!this.#readDiffering([...seen.present, ...hidden])) return false
    if (this.#files.hasOtherNames || this.#files.pending.size > MOST_PENDING) await this.flush(ways)
    return true
  }

  /**
   * Reads what git has found to differ from the index, and is not known as it is. What the index does not have yet is looked at
   * here, for git compares with that. False as of `readAgain`, and for so much that git does it better.
   */
  #readDiffering(present: readonly string[]): boolean {
    const there = this.#isSmall ? [] : [...this.#files.pending].flatMap(([path, file]) => (file === null ? [] : [path]))
    const paths = new Set([...there, ...this.#inside(present)])
    const differing = [...paths].filter(path => !this.#files.isAsKnown(path))
    return differing.length <= MOST_READ && this.#files.readAgain(differing)
  }

  #inside(paths: readonly string[]): string[] {
    return inside(this.#prefix, paths)
  }
}

function inside(prefix: string, paths: readonly string[]): string[] {
  return paths.map(path => path.slice(prefix.length))
}

/** Whether a folder is one of those, or below one: `git ls-files --directory` does not look into them. */
function countsIn(listed: readonly string[]): (path: string) => boolean {
  const counting = new Set(listed.map(path => path.replace(/\/$/, '')))
  return path => {
    for (let at = path; ; at = at.slice(0, at.lastIndexOf('/'))) {
      if (counting.has(at) || counting.has('')) return true
      if (!at.includes('/')) return false
    }
  }
}

function rulesNow(folders: KnownFolders, { rules }: KnownTreeGit): string | null {
  const inFolders = folders.stampOfRules()
  return inFolders === null ? null : [inFolders, ...rules.map(stampOf)].join('\n')
}

/** The ids of trees by their paths, as `git ls-tree -r -d -z` lists those below `top`. */
function parseTrees(listed: string, top: string): Map<string, string> {
  const entries = splitAtNul(listed).flatMap(entry => {
    const [, id = '', path = ''] = entry.match(/^040000 tree ([0-9a-f]+)\t(.+)$/s) ?? []
    return id === '' ? [] : [[path, id] as const]
  })
  return new Map([['', top], ...entries])
}

const NOTHING: IndexDifferences = { gone: [], present: [] }
/** Those of a small one. */
const MOST_FILES = 4_000
const MOST_FOLDERS = 2_000
const MOST_READ = 1_000
const MOST_PENDING = 200
