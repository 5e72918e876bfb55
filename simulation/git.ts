import { createHash } from 'node:crypto'
import { join, relative, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { deflateSync, inflateSync } from 'node:zlib'
import type { Disk, Inode } from './disk.ts'

/** How a git command ends. */
interface Ended {
  code: number
  stdout: Buffer | string
  stderr: string
}

interface Entry {
  path: string
  mode: string
  id: string
  /** Of the file when it was read: as the index of git has it. */
  stamp: string
}

class Fatal extends Error {}

const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'

/**
 * What git does of the commands that codemachine calls, on the files of the machine: objects and references as git has them, an
 * index and packs of its own. A command that is not here is a mistake of the simulation, and said.
 */
export function runGit(
  disk: Disk,
  args: readonly string[],
  env: Readonly<NodeJS.ProcessEnv>,
  cwd: string,
  input: Buffer,
): Ended {
  try {
    return { code: 0, stderr: '', stdout: '', ...new Git(disk, env, cwd, input).run(args) }
  } catch (error) {
    if (error instanceof Fatal) return { code: 128, stdout: '', stderr: `fatal: ${error.message}\n` }
    if (error instanceof Error && 'code' in error) return { code: 128, stdout: '', stderr: `fatal: ${error.message}\n` }
    throw error
  }
}

class Git {
  readonly #disk: Disk
  readonly #env: Readonly<NodeJS.ProcessEnv>
  readonly #cwd: string
  readonly #input: Buffer
  readonly #top: string
  readonly #gitDir: string

  constructor(disk: Disk, env: Readonly<NodeJS.ProcessEnv>, cwd: string, input: Buffer) {
    this.#disk = disk
    this.#env = env
    this.#cwd = cwd
    this.#input = input
    this.#top = env.GIT_WORK_TREE ?? cwd
    this.#gitDir = env.GIT_DIR ?? join(cwd, '.git')
  }

  run(given: readonly string[]): Partial<Ended> {
    const args = [...given]
    while (args[0]?.startsWith('-')) args.splice(0, args[0] === '-c' || args[0] === '-C' ? 2 : 1)
    const [command = '', ...rest] = args
    const flags = new Set(rest)
    switch (command) {
      case 'version':
        return { stdout: 'git version 2.47.3\n' }
      case 'init':
        return this.#init(resolve(this.#cwd, rest.at(-1) ?? '.'), flags.has('--bare'))
      case 'config':
        return { code: 1 }
      case 'rev-parse':
        return this.#revParse(rest)
      case 'check-ignore':
        return this.#checkIgnore(flags)
      case 'status':
        return { stdout: this.#status(), stderr: '' }
      case 'ls-files':
        return this.#lsFiles(rest)
      case 'update-index':
        return this.#updateIndex(flags)
      case 'write-tree':
        return { stdout: `${this.#writeTree(rest.find(each => each.startsWith('--prefix='))?.slice(9) ?? '')}\n` }
      case 'read-tree':
        this.#writeIndex(
          (flags.has('--empty') ? [] : this.#filesOf(rest.at(-1) ?? '')).map(file => ({ ...file, stamp: '' })),
        )
        return {}
      case 'checkout-index':
        this.#checkout()
        return {}
      case 'ls-tree':
        return this.#lsTree(rest)
      case 'diff-tree':
        return this.#diffTree(rest)
      case 'cat-file':
        return this.#catFile(rest)
      case 'for-each-ref':
        return {
          stdout: this.#references(rest.at(-1) ?? '')
            .map(({ name, id }) => `${id} ${name}\n`)
            .join(''),
        }
      case 'update-ref':
        this.#deleteReferences()
        return {}
      case 'log':
        return this.#log(rest)
      case 'rev-list':
        return {
          stdout: this.#history(rest)
            .map(id => `${id}\n`)
            .join(''),
        }
      case 'merge-base':
        return { code: this.#history([rest.at(-1) ?? '']).includes(rest.at(-2) ?? '') ? 0 : 1 }
      case 'pack-objects':
        return this.#pack(rest.at(-1) ?? '')
      case 'index-pack':
        return this.#verifyPack(rest.at(-1) ?? '')
      case 'repack':
      case 'prune':
        return {}
      default:
        throw new Error(`The simulated git has no: git ${given.join(' ')}`)
    }
  }

  #checkout(): void {
    for (const { path, mode, id } of this.#index()) {
      if (mode === '160000') continue
      const { bytes } = this.#object(id)
      if (mode === '120000') this.#disk.create(join(this.#top, path), 'link', 0o777, bytes.toString())
      else this.#disk.put(join(this.#top, path), bytes, mode === '100755' ? 0o755 : 0o644)
    }
  }

  #deleteReferences(): void {
    for (const line of this.#lines()) {
      const [, name = ''] = line.match(/^delete (\S+)/) ?? []
      if (name !== '') this.#disk.unlink(join(this.#gitDir, name))
    }
  }

  #lines(separator = '\n'): string[] {
    return this.#input
      .toString('latin1')
      .split(separator)
      .filter(each => each !== '')
  }

  #init(folder: string, isBare: boolean): Partial<Ended> {
    const gitDir = isBare ? folder : join(folder, '.git')
    for (const each of ['objects/info', 'objects/pack', 'refs/heads', 'refs/tags'])
      this.#disk.makeFolders(join(gitDir, each))
    if (this.#disk.look(join(gitDir, 'HEAD')) === null) this.#disk.put(join(gitDir, 'HEAD'), 'ref: refs/heads/main\n')
    const names = {
      exact: '',
      windows: '\tignorecase = true\n',
      macos: '\tignorecase = true\n\tprecomposeunicode = true\n',
    }
    if (this.#disk.look(join(gitDir, 'config')) === null)
      this.#disk.put(
        join(gitDir, 'config'),
        `[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = ${isBare}\n${names[this.#disk.naming]}`,
      )
    return {}
  }

  #revParse(args: readonly string[]): Partial<Ended> {
    if (args.includes('--show-object-format')) {
      const head = this.#disk.text(join(this.#gitDir, 'HEAD'))
      const isRepository =
        head !== null &&
        /^(ref: refs\/|[0-9a-f]{40})/.test(head) &&
        this.#disk.look(join(this.#gitDir, 'objects'))?.kind === 'folder' &&
        this.#disk.look(join(this.#gitDir, 'refs'))?.kind === 'folder'
      if (!isRepository) throw new Fatal(`not a git repository: '${this.#gitDir}'`)
      return { stdout: 'sha1\n' }
    }
    if (args.includes('--local-env-vars')) return { stdout: 'GIT_DIR\n' }
    if (args.includes('--git-dir')) return { stdout: '.git\n' }
    const id = this.#resolve(args.at(-1) ?? '')
    return id === null ? { code: 1 } : { stdout: `${id}\n` }
  }

  /** `<id>`, `<id>^{tree}`, `<tree>:<path>`. */
  #resolve(revision: string): string | null {
    try {
      const [, base = '', kind, path] = revision.match(/^([0-9a-f]{40})(?:\^\{(\w+)\}|:(.*))?$/) ?? []
      if (base === '') return null
      const { type } = this.#object(base)
      if (kind === 'commit') return type === 'commit' ? base : null
      if (kind === undefined && path === undefined) return base
      const tree = this.#treeOf(base)
      if (path === undefined || path === '') return tree
      return this.#treeEntries(tree).find(entry => entry.path === path)?.id ?? null
    } catch (error) {
      if (error instanceof Fatal) return null
      throw error
    }
  }

  #objectFolders(): string[] {
    const borrowed = (this.#env.GIT_ALTERNATE_OBJECT_DIRECTORIES ?? '').split(':').filter(each => each !== '')
    return [join(this.#gitDir, 'objects'), ...borrowed]
  }

  /** An object as the machine has it. Throws where it is missing or torn. */
  #object(id: string): { type: string; bytes: Buffer } {
    if (id === EMPTY_TREE) return { type: 'tree', bytes: Buffer.alloc(0) }
    for (const folder of this.#objectFolders()) {
      const node = this.#disk.look(join(folder, id.slice(0, 2), id.slice(2)))
      const whole = node?.kind === 'file' ? inflated(this.#disk.bytesOf(node)) : this.#packed(folder, id)
      if (whole === null) continue
      if (createHash('sha1').update(whole).digest('hex') !== id) throw new Fatal(`loose object ${id} is corrupt`)
      const end = whole.indexOf(0)
      return { type: whole.subarray(0, end).toString().split(' ')[0] ?? '', bytes: whole.subarray(end + 1) }
    }
    throw new Fatal(`bad object ${id}`)
  }

  #has(id: string): boolean {
    try {
      return this.#object(id).type !== ''
    } catch (error) {
      if (error instanceof Fatal) return false
      throw error
    }
  }

  #packed(folder: string, id: string): Buffer | null {
    const packs = this.#disk.look(join(folder, 'pack'))?.entries ?? new Map<string, Inode>()
    for (const [name, node] of packs) {
      if (!name.endsWith('.pack') || !packs.has(name.replace(/pack$/, 'idx'))) continue
      const found = packOf(this.#disk, node)?.[id]
      if (found !== undefined) return Buffer.from(found, 'base64')
    }
    return null
  }

  #write(type: string, bytes: Buffer): string {
    const whole = Buffer.concat([Buffer.from(`${type} ${bytes.length}\0`), bytes])
    const id = createHash('sha1').update(whole).digest('hex')
    if (id === EMPTY_TREE || this.#has(id)) return id
    const path = join(this.#gitDir, 'objects', id.slice(0, 2), id.slice(2))
    // As `core.fsync=committed` has it.
    this.#disk.put(path, deflateSync(whole, { level: 1 }), 0o444)
    this.#disk.sync(this.#disk.get(path))
    return id
  }

  #treeOf(id: string): string {
    const { type, bytes } = this.#object(id)
    if (type === 'tree') return id
    const tree = bytes.toString('latin1').match(/^tree ([0-9a-f]{40})/)?.[1]
    if (tree === undefined) throw new Fatal(`${id} is no tree`)
    return tree
  }

  #treeEntries(tree: string): { mode: string; path: string; id: string }[] {
    const { bytes } = this.#object(tree)
    const entries = []
    for (let at = 0; at < bytes.length; ) {
      const end = bytes.indexOf(0, at)
      const [mode = '', ...name] = bytes.subarray(at, end).toString('latin1').split(' ')
      entries.push({
        mode: mode.padStart(6, '0'),
        path: name.join(' '),
        id: bytes.subarray(end + 1, end + 21).toString('hex'),
      })
      at = end + 21
    }
    return entries
  }

  /** The files of a tree or commit, in git's order. */
  #filesOf(id: string): { mode: string; path: string; id: string }[] {
    const inside = (tree: string, prefix: string): { mode: string; path: string; id: string }[] =>
      this.#treeEntries(tree).flatMap(entry =>
        entry.mode === '040000'
          ? inside(entry.id, `${prefix}${entry.path}/`)
          : [{ ...entry, path: prefix + entry.path }],
      )
    return inside(this.#treeOf(id), '').sort(byPath)
  }

  get #indexPath(): string {
    return this.#env.GIT_INDEX_FILE ?? join(this.#gitDir, 'index')
  }

  #index(): Entry[] {
    const text = this.#disk.text(this.#indexPath)
    if (text === null) return []
    try {
      const { entries, sum } = JSON.parse(text) as { entries: Entry[]; sum: string }
      if (sum === sumOf(entries)) return entries
    } catch {}
    throw new Fatal('index file corrupt')
  }

  #writeIndex(entries: readonly Entry[]): void {
    const lock = `${this.#indexPath}.lock`
    if (this.#disk.look(lock) !== null) throw new Fatal(`Unable to create '${lock}': File exists.`)
    const sorted = entries.toSorted(byPath)
    this.#disk.put(lock, JSON.stringify({ entries: sorted, sum: sumOf(sorted) }))
    this.#disk.rename(lock, this.#indexPath)
  }

  #updateIndex(flags: ReadonlySet<string>): Partial<Ended> {
    const entries = new Map(this.#index().map(entry => [entry.path, entry]))
    for (const line of this.#lines('\0')) {
      if (flags.has('--index-info')) {
        const [, mode = '', id = '', path = ''] = line.match(/^(\d{6}) (?:\w+ )?([0-9a-f]{40})(?: \d)?\t(.*)$/s) ?? []
        if (mode === '000000') entries.delete(path)
        else entries.set(path, { path, mode, id, stamp: '' })
      } else if (flags.has('--force-remove')) entries.delete(line)
      else this.#stage(entries, line)
    }
    this.#writeIndex([...entries.values()])
    return {}
  }

  #stage(entries: Map<string, Entry>, path: string): void {
    const node = this.#disk.look(join(this.#top, fromLatin1(path)), false)
    if (node === null || node.kind === 'folder') {
      entries.delete(path)
      return
    }
    for (const other of [...entries.keys()])
      if (other.startsWith(`${path}/`) || path.startsWith(`${other}/`)) entries.delete(other)
    entries.set(path, {
      path,
      mode: modeOf(node),
      id: this.#write('blob', contentOf(this.#disk, node)),
      stamp: stampOf(node),
    })
  }

  #writeTree(prefix: string): string {
    const entries = this.#index()
    for (const { id, mode } of entries)
      if (mode !== '160000' && !this.#has(id))
        throw new Fatal(`error: invalid object ${mode} ${id}\nfatal: git-write-tree: error building trees`)
    const write = (folder: string): string => {
      const parts = new Map<string, { mode: string; id: string }>()
      for (const { path, mode, id } of entries) {
        if (!path.startsWith(folder)) continue
        const rest = path.slice(folder.length)
        const end = rest.indexOf('/')
        if (end === -1) parts.set(rest, { mode, id })
        else parts.set(`${rest.slice(0, end)}/`, { mode: '40000', id: '' })
      }
      const sorted = [...parts].sort(([a], [b]) => (a < b ? -1 : 1))
      const bytes = sorted.map(([name, { mode, id }]) => {
        const isFolder = name.endsWith('/')
        const object = isFolder ? write(folder + name) : id
        return Buffer.concat([
          Buffer.from(`${mode} ${isFolder ? name.slice(0, -1) : name}\0`, 'latin1'),
          Buffer.from(object, 'hex'),
        ])
      })
      return this.#write('tree', Buffer.concat(bytes))
    }
    if (prefix !== '' && !entries.some(({ path }) => path.startsWith(prefix)))
      throw new Fatal(`git-write-tree: prefix ${prefix} not found`)
    return write(prefix)
  }

  get #config(): string {
    return this.#disk.text(join(this.#gitDir, 'config')) ?? ''
  }

  /** Answers what git compares of a path: with `core.ignorecase`, no case of ASCII. */
  #keys(): (path: string) => string {
    if (!this.#config.includes('ignorecase = true')) return path => path
    return path => path.replace(/[A-Z]+/g, letters => letters.toLowerCase())
  }

  /** All files below the top that git sees, and what it ignores: a folder as one, with `/`. */
  #seen(given: readonly string[] | null): { files: string[]; ignored: string[] } {
    const files: string[] = []
    const ignored: string[] = []
    const keyOf = this.#keys()
    const flags = keyOf('A') === 'A' ? 's' : 'si'
    const composes = this.#config.includes('precomposeunicode = true')
    const nameOf = (name: string) => Buffer.from(composes ? name.normalize() : name).toString('latin1')
    const rulesOf = (folder: string, prefix: string) =>
      given === null ? rulesIn(this.#disk.text(join(folder, '.gitignore')), prefix, flags) : []
    const inside = (folder: string, prefix: string, rules: readonly Rule[]) => {
      const own = [...rules, ...rulesOf(folder, prefix)]
      for (const [name, child] of [...(this.#disk.look(folder)?.entries ?? [])].sort(([a], [b]) => (a < b ? -1 : 1))) {
        if (keyOf(name) === '.git') continue
        const path = prefix + nameOf(name)
        const isFolder = child.kind === 'folder'
        if (isIgnored(own, path, isFolder)) ignored.push(isFolder ? `${path}/` : path)
        else if (isFolder) inside(join(folder, name), `${path}/`, own)
        else files.push(path)
      }
    }
    const texts = given ?? [this.#disk.text(join(this.#gitDir, 'info', 'exclude'))]
    inside(
      this.#top,
      '',
      texts.flatMap(text => rulesIn(text, '', flags)),
    )
    return { files, ignored }
  }

  #status(): string {
    const entries = this.#index()
    const keyOf = this.#keys()
    const known = new Set(entries.map(({ path }) => keyOf(path)))
    const refreshed = entries.map(entry => {
      const node = this.#disk.look(join(this.#top, fromLatin1(entry.path)), false)
      if (node === null || node.kind === 'folder') return { entry, how: 'D' }
      if (entry.stamp === stampOf(node)) return { entry, how: ' ' }
      if (entry.mode === '160000') return { entry, how: 'T' }
      const id = createHash('sha1')
        .update(blobOf(contentOf(this.#disk, node)))
        .digest('hex')
      if (id !== entry.id || modeOf(node) !== entry.mode) return { entry, how: 'M' }
      return { entry: { ...entry, stamp: stampOf(node) }, how: ' ' }
    })
    if (refreshed.some(({ entry }, at) => entry !== entries[at])) this.#writeIndex(refreshed.map(({ entry }) => entry))
    const { files, ignored } = this.#seen(null)
    const isKnownIn = (folder: string) =>
      folder.endsWith('/') && entries.some(({ path }) => keyOf(path).startsWith(keyOf(folder)))
    return [
      ...refreshed.map(({ entry, how }) => `A${how} ${entry.path}\0`),
      ...files.filter(path => !known.has(keyOf(path))).map(path => `?? ${path}\0`),
      ...ignored.filter(path => !known.has(keyOf(path)) && !isKnownIn(path)).map(path => `!! ${path}\0`),
    ].join('')
  }

  #lsFiles(args: readonly string[]): Partial<Ended> {
    const entries = this.#index()
    const excludes = args.find(each => each.startsWith('--exclude-from='))?.slice('--exclude-from='.length)
    const within = args.includes('--') ? args.slice(args.indexOf('--') + 1) : null
    const isWithin = (path: string) =>
      within === null || within.some(each => path === each || path.startsWith(each.endsWith('/') ? each : `${each}/`))
    if (args.includes('-o')) {
      const keyOf = this.#keys()
      const known = new Set(entries.map(({ path }) => keyOf(path)))
      const { files } = this.#seen(excludes === undefined ? null : [this.#disk.text(excludes) ?? ''])
      return {
        stdout: files
          .filter(path => !known.has(keyOf(path)) && isWithin(path))
          .map(path => `${path}\0`)
          .join(''),
      }
    }
    if (args.includes('-i')) {
      const { ignored } = this.#seen(null)
      const keyOf = this.#keys()
      const keys = ignored.map(keyOf)
      const isIn = (path: string) => keys.some(each => path === each || (each.endsWith('/') && path.startsWith(each)))
      return {
        stdout: entries
          .filter(({ path }) => isIn(keyOf(path)))
          .map(({ path }) => `${path}\0`)
          .join(''),
      }
    }
    const listed = entries.filter(({ path }) => isWithin(path))
    if (args.includes('--error-unmatch') && listed.length === 0) return { code: 1 }
    return {
      stdout: listed
        .map(({ path, mode, id }) => (args.includes('--stage') ? `${mode} ${id} 0\t${path}\0` : `${path}\0`))
        .join(''),
    }
  }

  #checkIgnore(flags: ReadonlySet<string>): Partial<Ended> {
    const { ignored } = this.#seen(null)
    const asked = this.#lines('\0')
    const keyOf = this.#keys()
    const keys = ignored.map(keyOf)
    const hits = asked.filter(path =>
      keys.some(each => each === keyOf(path) || (each.endsWith('/') && `${keyOf(path)}/`.startsWith(each))),
    )
    if (flags.has('--quiet')) return { code: hits.length > 0 ? 0 : 1 }
    return { code: hits.length > 0 ? 0 : 1, stdout: hits.map(path => `.gitignore\x001\x00*\x00${path}\0`).join('') }
  }

  #lsTree(args: readonly string[]): Partial<Ended> {
    const at = args.indexOf('--')
    const [tree = '', ...paths] = args.filter(each => !each.startsWith('-'))
    const within = at === -1 ? paths : args.slice(at + 1)
    const files = this.#filesOf(tree).filter(
      ({ path }) =>
        within.length === 0 ||
        within.some(each => path === each || path.startsWith(each.endsWith('/') ? each : `${each}/`)),
    )
    const isLong = args.includes('-l')
    return {
      stdout: files
        .map(
          ({ mode, id, path }) =>
            `${mode} ${mode === '160000' ? 'commit' : 'blob'} ${id}${isLong ? ` ${String(this.#object(id).bytes.length).padStart(7)}` : ''}\t${path}\0`,
        )
        .join(''),
    }
  }

  #diffTree(args: readonly string[]): Partial<Ended> {
    if (args.includes('--stdin')) throw new Error('The simulated git has no diff-tree --stdin')
    const end = args.indexOf('--')
    const named = (end === -1 ? args : args.slice(0, end)).filter(each => !each.startsWith('-'))
    const within = end === -1 ? [] : args.slice(end + 1)
    const [before = '', after = ''] = named.slice(-2)
    const [old, next] = [before, after].map(id => new Map(this.#filesOf(id).map(file => [file.path, file])))
    if (!old || !next) return {}
    const paths = [...new Set([...old.keys(), ...next.keys()])].sort((a, b) => (a < b ? -1 : 1))
    const none = { mode: '000000', id: '0'.repeat(40) }
    const changed = paths.flatMap(path => {
      const [was, is] = [old.get(path) ?? none, next.get(path) ?? none]
      const isIn = within.length === 0 || within.some(each => path === each || path.startsWith(`${each}/`))
      if (!isIn || (was.id === is.id && was.mode === is.mode)) return []
      return [
        {
          path,
          was,
          is,
          status: was === none ? 'A' : is === none ? 'D' : was.mode.slice(0, 2) === is.mode.slice(0, 2) ? 'M' : 'T',
        },
      ]
    })
    if (args.includes('--name-only')) return { stdout: changed.map(({ path }) => `${path}\0`).join('') }
    const textOf = ({ id, mode }: { id: string; mode: string }) =>
      id === none.id || mode === '160000' ? '' : this.#object(id).bytes.toString('latin1')
    if (args.includes('-p'))
      return {
        stdout: changed
          .map(({ path, was, is }) => {
            const [gone, come] = lineDifference(textOf(was), textOf(is))
            return `diff --git a/${path} b/${path}\n--- ${was.id === none.id ? '/dev/null' : `a/${path}`}\n+++ ${is.id === none.id ? '/dev/null' : `b/${path}`}\n@@ -1,${gone.length} +1,${come.length} @@\n${gone.map(each => `-${each}\n`).join('')}${come.map(each => `+${each}\n`).join('')}`
          })
          .join(''),
      }
    const raw = changed
      .map(({ path, was, is, status }) => `:${was.mode} ${is.mode} ${was.id} ${is.id} ${status}\0${path}\0`)
      .join('')
    if (!args.includes('--numstat')) return { stdout: raw }
    return {
      stdout:
        raw +
        changed
          .map(({ path, was, is }) => {
            const [gone, come] = lineDifference(textOf(was), textOf(is))
            return `${come.length}\t${gone.length}\t${path}\0`
          })
          .join(''),
    }
  }

  #catFile(args: readonly string[]): Partial<Ended> {
    if (args[0] === '-e') return { code: this.#resolve(args[1] ?? '') === null ? 1 : 0 }
    if (args[0] === '--batch' || args[0] === '--batch-check') {
      const parts = this.#lines().map(id => {
        if (!this.#has(id)) return Buffer.from(`${id} missing\n`)
        const { type, bytes } = this.#object(id)
        const head = Buffer.from(`${id} ${type} ${bytes.length}\n`)
        return args[0] === '--batch' ? Buffer.concat([head, bytes, Buffer.from('\n')]) : head
      })
      return { stdout: Buffer.concat(parts) }
    }
    return { stdout: this.#object(args.at(-1) ?? '').bytes }
  }

  #references(prefix: string): { name: string; id: string }[] {
    const found = []
    for (const [path, node] of this.#disk.walk(join(this.#gitDir, prefix))) {
      const name = relative(this.#gitDir, path)
      const id = node.kind === 'file' ? this.#disk.bytesOf(node).toString().trim() : ''
      if (/^[0-9a-f]{40}$/.test(id) && !/\.(lock|tmp)$/.test(name)) found.push({ name, id })
    }
    return found
  }

  #parentsOf(commit: string): string[] {
    return [
      ...this.#object(commit)
        .bytes.toString('latin1')
        .matchAll(/^parent ([0-9a-f]{40})$/gm),
    ].map(([, id = '']) => id)
  }

  /** The newest first, of `a`, `a..b` and `^a`. */
  #history(args: readonly string[]): string[] {
    const named = args
      .filter(each => !each.startsWith('-'))
      .flatMap(each => (each.includes('..') ? [`^${each.split('..')[0]}`, each.split('..')[1] ?? ''] : [each]))
    const all = (ids: readonly string[]) => {
      const found = new Set(ids)
      for (const id of found) for (const parent of this.#parentsOf(id)) found.add(parent)
      return found
    }
    const left = all(named.filter(each => each.startsWith('^')).map(each => each.slice(1)))
    return [...all(named.filter(each => !each.startsWith('^')))].filter(id => !left.has(id))
  }

  #log(args: readonly string[]): Partial<Ended> {
    const commits = this.#history(args)
    if (args.includes('--format=%T'))
      return { stdout: `${this.#treeOf(commits.findLast(id => this.#parentsOf(id).length === 0) ?? '')}\n` }
    const most = Number(args.find(each => /^--max-count=/.test(each))?.slice(12) ?? 1000)
    const separator = args.includes('-z') ? '\0' : '\n'
    const format = args.find(each => each.startsWith('--format='))?.slice(9) ?? '%H'
    return {
      stdout: commits
        .slice(0, most)
        .map(id => {
          const text = this.#object(id).bytes.toString('latin1')
          const subject = text.slice(text.indexOf('\n\n') + 2).split('\n')[0] ?? ''
          return format
            .replace('%H', id)
            .replace('%cI', '2026-11-20T22:00:00+00:00')
            .replace('%s', subject)
            .replaceAll('%n', '\n')
            .replaceAll('%x00', '\0')
        })
        .map(each => each + separator)
        .join(''),
    }
  }

  #pack(base: string): Partial<Ended> {
    const ids = (tree: string, found: Set<string>) => {
      if (tree === EMPTY_TREE || found.has(tree)) return found
      found.add(tree)
      for (const { mode, id } of this.#treeEntries(tree)) {
        if (mode === '040000') ids(id, found)
        else if (mode !== '160000') found.add(id)
      }
      return found
    }
    const wanted = new Set<string>()
    const left = new Set<string>()
    for (const line of this.#lines()) if (line.startsWith('^')) ids(line.slice(1), left)
    for (const line of this.#lines()) if (!line.startsWith('^')) ids(this.#treeOf(line), wanted)
    const objects = [...wanted].filter(id => !left.has(id)).sort()
    if (objects.length === 0) return {}
    const content: Record<string, string> = {}
    for (const id of objects) {
      const { type, bytes } = this.#object(id)
      content[id] = Buffer.concat([Buffer.from(`${type} ${bytes.length}\0`), bytes]).toString('base64')
    }
    const name = createHash('sha1').update(objects.join('\n')).digest('hex')
    for (const ending of ['pack', 'idx']) {
      const path = `${base}-${name}.${ending}`
      this.#disk.put(path, ending === 'pack' ? JSON.stringify(content) : 'index')
      this.#disk.sync(this.#disk.get(path))
    }
    return { stdout: `${name}\n` }
  }

  #verifyPack(path: string): Partial<Ended> {
    const node = this.#disk.get(path)
    for (const [id, text] of Object.entries(packOf(this.#disk, node) ?? { '': '' }))
      if (createHash('sha1').update(Buffer.from(text, 'base64')).digest('hex') !== id)
        throw new Fatal(`pack ${path} is corrupted`)
    return {}
  }
}

/** Makes a commit of everything in a folder, in its own repository. */
export function commitAll(disk: Disk, folder: string, words: string): void {
  const run = (args: readonly string[], input = '') =>
    runGit(disk, args, {}, folder, Buffer.from(input)).stdout.toString()
  if (disk.look(join(folder, '.git')) === null) run(['init', '.'])
  const files = run(['ls-files', '-o', '-z'])
  const known = run(['ls-files', '-z'])
  run(['update-index', '--add', '--remove', '-z', '--stdin'], files + known)
  const tree = run(['write-tree']).trim()
  const parent = disk.text(join(folder, '.git/refs/heads/main'))?.trim()
  const text = `tree ${tree}\n${parent ? `parent ${parent}\n` : ''}author A <a@b.c> 1795212000 +0000\ncommitter A <a@b.c> 1795212000 +0000\n\n${words}\n`
  const whole = Buffer.from(`commit ${Buffer.byteLength(text)}\0${text}`)
  const id = createHash('sha1').update(whole).digest('hex')
  disk.put(join(folder, '.git/objects', id.slice(0, 2), id.slice(2)), deflateSync(whole))
  disk.put(join(folder, '.git/refs/heads/main'), `${id}\n`)
  disk.syncAll()
}

/** Why one of these commits of a private git directory is not whole, or one that a reference names; null if all are. */
export function problemOfSavepoints(disk: Disk, gitDir: string, commits: ReadonlySet<string>): string | null {
  const run = (args: readonly string[]) => runGit(disk, args, { GIT_DIR: gitDir }, '/', Buffer.alloc(0))
  const listed = run(['for-each-ref', '--format=', 'refs/savepoints']).stdout.toString().split('\n')
  for (const id of new Set([...commits, ...listed.flatMap(line => line.slice(0, 40) || [])])) {
    const { code, stderr } = run(['ls-tree', '-r', '-l', '-z', id])
    if (code !== 0) return `${id}: ${stderr}`
  }
  return null
}

interface Rule {
  pattern: RegExp
  isNot: boolean
  folderOnly: boolean
}

function rulesIn(text: string | null, prefix: string, flags: string): Rule[] {
  return (text ?? '').split('\n').flatMap(line => {
    const rule = line.trimEnd()
    if (rule === '' || rule.startsWith('#')) return []
    const isNot = rule.startsWith('!')
    const bare = rule.slice(isNot ? 1 : 0)
    const folderOnly = bare.endsWith('/')
    const name = bare.replace(/\/$/, '').replace(/^\//, '')
    const isAnchored = bare.replace(/\/$/, '').includes('/')
    const glob = name
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('**', '\u0001')
      .replaceAll('*', '[^/]*')
      .replaceAll('?', '[^/]')
      .replaceAll('\u0001', '.*')
    const before = prefix.replace(/[.+^${}()|[\]\\?*]/g, '\\$&')
    return [{ pattern: new RegExp(`^${before}${isAnchored ? '' : '(?:.*/)?'}${glob}$`, flags), isNot, folderOnly }]
  })
}

function isIgnored(rules: readonly Rule[], path: string, isFolder: boolean): boolean {
  const last = rules.findLast(({ pattern, folderOnly }) => (isFolder || !folderOnly) && pattern.test(path))
  return last !== undefined && !last.isNot
}

function byPath(a: { path: string }, b: { path: string }): number {
  return a.path < b.path ? -1 : Number(a.path > b.path)
}

function sumOf(entries: readonly Entry[]): string {
  return createHash('sha1').update(JSON.stringify(entries)).digest('hex')
}

function stampOf(node: Inode): string {
  return `${node.ino} ${node.size} ${node.mtimeNs} ${node.mode}`
}

function modeOf(node: Inode): string {
  return node.kind === 'link' ? '120000' : (node.mode & 0o100) === 0 ? '100644' : '100755'
}

function contentOf(disk: Disk, node: Inode): Buffer {
  return node.kind === 'link' ? Buffer.from(node.target) : disk.bytesOf(node)
}

function blobOf(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`blob ${bytes.length}\0`), bytes])
}

function inflated(bytes: Buffer): Buffer | null {
  try {
    return inflateSync(bytes)
  } catch {
    throw new Fatal('loose object is corrupt')
  }
}

function packOf(disk: Disk, node: Inode): Record<string, string> | null {
  try {
    return JSON.parse(disk.bytesOf(node).toString())
  } catch {
    return null
  }
}

function fromLatin1(path: string): string {
  return Buffer.from(path, 'latin1').toString('utf8')
}

/** The lines that are gone and that have come, without what is the same at both ends. */
function lineDifference(before: string, after: string): [string[], string[]] {
  const [a, b] = [before, after].map(text => (text === '' ? [] : text.replace(/\n$/, '').split('\n')))
  if (!a || !b) return [[], []]
  while (a.length > 0 && b.length > 0 && a[0] === b[0]) {
    a.shift()
    b.shift()
  }
  while (a.length > 0 && b.length > 0 && a.at(-1) === b.at(-1)) {
    a.pop()
    b.pop()
  }
  return [a, b]
}

/** The tree of the files below a folder but for these, if it is not this tree of a git; null: it is, for how the disk compares names. */
export function differenceOfFiles(
  disk: Disk,
  { folder, ignored, tree, env }: { folder: string; ignored: string; tree: string; env: NodeJS.ProcessEnv },
): string | null {
  const gitDir = '/tmp/.examined'
  const run = (args: readonly string[], input: string | Buffer = '') =>
    runGit(disk, args, { GIT_DIR: gitDir, GIT_WORK_TREE: folder }, folder, Buffer.from(input))
  // A power cut may have brought it back.
  if (disk.look(gitDir) !== null) disk.removeAll(gitDir)
  run(['init', '--bare', gitDir])
  disk.put(`${gitDir}/rules`, ignored)
  const listed = run(['ls-files', '-o', '-z', `--exclude-from=${gitDir}/rules`]).stdout
  run(['update-index', '--add', '-z', '--stdin'], listed)
  const now = run(['write-tree']).stdout.toString().trim()
  const entries = (listed: Ended) =>
    listed.code === 0 ? disk.keyOf(listed.stdout.toString()).split('\0').sort() : null
  const isSame =
    now === tree ||
    (disk.naming !== 'exact' &&
      isDeepStrictEqual(
        entries(run(['ls-tree', '-r', '-z', now])),
        entries(runGit(disk, ['ls-tree', '-r', '-z', tree], env, folder, Buffer.alloc(0))),
      ))
  disk.removeAll(gitDir)
  return isSame ? null : now
}

/** What git ignores in a folder: never what has been committed. */
export function ignoreRules(disk: Disk, folder: string): string {
  const head = disk.text(join(folder, '.git/refs/heads/main'))?.trim() ?? EMPTY_TREE
  const { stdout } = runGit(disk, ['ls-tree', '-r', '-z', head], {}, folder, Buffer.alloc(0))
  const committed = stdout.toString().split('\0').slice(0, -1)
  const kept = committed.map(line => `!/${line.slice(line.indexOf('\t') + 1)}\n`)
  return `${disk.text(join(folder, '.gitignore')) ?? ''}\n${kept.join('')}`
}

/** The files below a folder that `git add` would take. */
export function addableFiles(disk: Disk, folder: string): string[] {
  const env = { GIT_DIR: '/tmp/.none', GIT_WORK_TREE: folder }
  return runGit(disk, ['ls-files', '-o', '-z'], env, folder, Buffer.alloc(0)).stdout.toString().split('\0')
}
