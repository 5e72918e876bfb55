import { dirname, join, resolve } from 'node:path'
import { comparable } from '../src/platform/files.ts'
import { errnoError, type Random } from './kernel.ts'

/** A file, folder or link. */
export interface Inode {
  readonly ino: number
  readonly kind: 'file' | 'folder' | 'link'
  mode: number
  nlink: number
  /** Room for what is in it; of a file only. */
  room: Buffer
  size: number
  entries: Names
  target: string
  mtimeNs: bigint
  ctimeNs: bigint
  /** What is on the disk of a file that was written since it was last synced; null: the first `syncedSize` bytes of it. */
  synced: Buffer | null
  syncedSize: number
}

/** How a disk compares names: byte by byte; as Windows does, without case; or as macOS does, without case and normal form. */
export type Naming = 'exact' | 'windows' | 'macos'

/** What is in a folder, under the names that it was given. */
class Names extends Map<string, Inode> {
  readonly #keyOf: (name: string) => string
  readonly #given = new Map<string, string>()

  constructor(keyOf: (name: string) => string) {
    super()
    this.#keyOf = keyOf
  }

  /** The name under which a file is kept that is asked for by this one. */
  kept(name: string): string {
    return this.#given.get(this.#keyOf(name)) ?? name
  }

  override get(name: string): Inode | undefined {
    return super.get(this.kept(name))
  }

  override has(name: string): boolean {
    return super.has(this.kept(name))
  }

  override set(name: string, node: Inode): this {
    this.delete(name)
    this.#given.set(this.#keyOf(name), name)
    return super.set(name, node)
  }

  override delete(name: string): boolean {
    const wasThere = super.delete(this.kept(name))
    this.#given.delete(this.#keyOf(name))
    return wasThere
  }
}

export type Change = 'created' | 'written' | 'removed'

/**
 * The files of a machine. A name or a content that was not synced may be gone after a power cut: names in the order in which they
 * were made, as file systems with a journal have it; a sync of any file or folder brings all names before it to the disk.
 */
export class Disk {
  readonly root: Inode
  readonly naming: Naming
  readonly #now: () => number
  #nextIno = 2
  #ticks = 0n
  readonly #dirty = new Set<Inode>()
  /** What takes back each change of a name since the last sync. */
  #undo: (() => void)[] = []
  readonly #parts = new Map<string, { folders: readonly string[]; name: string | undefined }>()
  readonly #watchers = new Map<string, Set<() => void>>()
  /** Told of each change of a path. */
  onChange: (path: string, change: Change) => void = () => {}

  constructor(now: () => number, naming: Naming = 'exact') {
    this.#now = now
    this.naming = naming
    this.root = this.#make('folder', 0o755)
  }

  /** Of the nodes at a path: `node` is null where only its folder is there. */
  find(path: string, follow = true, left = 40): { folder: Inode; name: string; node: Inode | null; real: string } {
    if (left === 0) throw errnoError('ELOOP', 'open', path)
    const { folders, name: asked } = this.#partsOf(path)
    let folder = this.root
    let real = ''
    if (asked === undefined) return { folder, name: '', node: folder, real: '/' }
    for (const part of folders) {
      let next = folder.entries.get(part)
      real += `/${folder.entries.kept(part)}`
      if (next?.kind === 'link') {
        const found = this.find(resolve(dirname(real), next.target), true, left - 1)
        next = found.node ?? undefined
        real = found.real
      }
      if (next === undefined) throw errnoError('ENOENT', 'open', path)
      if (next.kind !== 'folder') throw errnoError('ENOTDIR', 'open', path)
      folder = next
    }
    const node = folder.entries.get(asked) ?? null
    const name = folder.entries.kept(asked)
    if (node?.kind === 'link' && follow)
      return this.find(resolve(real === '' ? '/' : real, node.target), true, left - 1)
    return { folder, name, node, real: `${real === '/' ? '' : real}/${name}` }
  }

  #partsOf(path: string): { folders: readonly string[]; name: string | undefined } {
    const known = this.#parts.get(path)
    if (known !== undefined) return known
    const folders = resolve('/', path)
      .split('/')
      .filter(each => each !== '')
    const parts = { name: folders.pop(), folders }
    this.#parts.set(path, parts)
    return parts
  }

  get(path: string, follow = true): Inode {
    const { node } = this.find(path, follow)
    if (node === null) throw errnoError('ENOENT', 'open', path)
    return node
  }

  /** What is there, or null. */
  look(path: string, follow = true): Inode | null {
    try {
      return this.find(path, follow).node
    } catch {
      return null
    }
  }

  folderAt(path: string): Inode {
    const node = this.get(path)
    if (node.kind !== 'folder') throw errnoError('ENOTDIR', 'scandir', path)
    return node
  }

  create(path: string, kind: Inode['kind'], mode: number, target = ''): Inode {
    const { folder, name, node, real } = this.find(path, kind === 'file')
    if (node !== null) throw errnoError('EEXIST', 'open', path)
    const made = this.#make(kind, mode)
    made.target = target
    this.#put(folder, name, made, real)
    this.onChange(real, 'created')
    return made
  }

  /** Makes a folder and those above it that are missing. */
  makeFolders(path: string, mode = 0o777): void {
    const found = this.look(path)
    if (found?.kind === 'folder') return
    if (found !== null) throw errnoError('EEXIST', 'mkdir', path)
    this.makeFolders(dirname(path), mode)
    this.create(path, 'folder', mode)
  }

  link(from: string, to: string): void {
    const node = this.get(from, false)
    const { folder, name, node: there, real } = this.find(to, false)
    if (there !== null) throw errnoError('EEXIST', 'link', from)
    this.#put(folder, name, node, real)
    this.onChange(real, 'created')
  }

  unlink(path: string): void {
    const { folder, name, node, real } = this.find(path, false)
    if (node === null) throw errnoError('ENOENT', 'unlink', path)
    if (node.kind === 'folder') throw errnoError('EISDIR', 'unlink', path)
    this.#take(folder, name, real)
    this.onChange(real, 'removed')
  }

  removeFolder(path: string): void {
    const { folder, name, node, real } = this.find(path, false)
    if (node === null) throw errnoError('ENOENT', 'rmdir', path)
    if (node.kind !== 'folder') throw errnoError('ENOTDIR', 'rmdir', path)
    if (node.entries.size > 0) throw errnoError('ENOTEMPTY', 'rmdir', path)
    this.#take(folder, name, real)
    this.onChange(real, 'removed')
  }

  removeAll(path: string): void {
    const node = this.get(path, false)
    for (const name of [...node.entries.keys()]) this.removeAll(join(path, name))
    if (node.kind === 'folder') this.removeFolder(path)
    else this.unlink(path)
  }

  rename(from: string, to: string): void {
    const source = this.find(from, false)
    const { node } = source
    if (node === null) throw errnoError('ENOENT', 'rename', from)
    const target = this.find(to, false)
    const name = this.#partsOf(to).name ?? ''
    const isSame = target.folder === source.folder && target.name === source.name
    // Another name of the same file stays, unless it differs by what the disk does not compare.
    if (target.node === node && (!isSame || name === source.name)) return
    if (!isSame && target.node?.kind === 'folder') {
      if (node.kind !== 'folder') throw errnoError('EISDIR', 'rename', from)
      if (target.node.entries.size > 0) throw errnoError('ENOTEMPTY', 'rename', from)
    }
    // One change: nobody ever sees neither name.
    const before = isSame ? null : target.node
    source.folder.entries.delete(source.name)
    target.folder.entries.set(name, node)
    if (before !== null) before.nlink--
    this.#undo.push(() => {
      if (before === null) target.folder.entries.delete(name)
      else target.folder.entries.set(target.name, before)
      source.folder.entries.set(source.name, node)
    })
    node.ctimeNs = this.#tick()
    this.#touched(source.folder, source.real)
    this.#touched(target.folder, target.real)
    this.onChange(source.real, 'removed')
    this.onChange(target.real, 'written')
  }

  write(node: Inode, bytes: Buffer, position: number, path: string): void {
    this.#beforeWrite(node, position)
    const end = position + bytes.length
    if (end > node.room.length) {
      const room = Buffer.alloc(Math.max(end, node.room.length * 2, 256))
      node.room.copy(room, 0, 0, node.size)
      node.room = room
    }
    if (position > node.size) node.room.fill(0, node.size, position)
    bytes.copy(node.room, position)
    node.size = Math.max(node.size, end)
    this.#written(node, path)
  }

  truncate(node: Inode, size: number, path: string): void {
    if (size > node.size) this.write(node, Buffer.alloc(size - node.size), node.size, path)
    else {
      this.#beforeWrite(node, size)
      node.size = size
      this.#written(node, path)
    }
  }

  bytesOf(node: Inode): Buffer {
    return Buffer.from(node.room.subarray(0, node.size))
  }

  read(path: string): Buffer {
    const node = this.get(path)
    if (node.kind === 'folder') throw errnoError('EISDIR', 'read', path)
    return this.bytesOf(node)
  }

  text(path: string): string | null {
    const node = this.look(path)
    return node?.kind === 'file' ? this.bytesOf(node).toString('utf8') : null
  }

  /** As a program writes a file that nobody syncs. */
  put(path: string, content: string | Buffer, mode = 0o644): void {
    this.makeFolders(dirname(path))
    const node = this.look(path) ?? this.create(path, 'file', mode)
    this.truncate(node, 0, path)
    this.write(node, Buffer.from(content), 0, path)
  }

  sync(node: Inode): void {
    node.synced = null
    node.syncedSize = node.size
    this.#dirty.delete(node)
    this.#undo = []
  }

  syncAll(): void {
    for (const node of [...this.#dirty]) this.sync(node)
    this.#undo = []
  }

  /** The power goes: what was not synced is there, is not, or is in part. */
  lose(random: Random): void {
    const kept = random.below(this.#undo.length + 1)
    for (const undo of this.#undo.splice(kept).reverse()) undo()
    this.#undo = []
    for (const node of this.#dirty) {
      const before = node.synced ?? Buffer.from(node.room.subarray(0, node.syncedSize))
      const how = random.below(3)
      if (how === 0) {
        node.room = before
        node.size = before.length
      } else if (how === 1 && node.synced === null)
        node.size = before.length + random.below(node.size - before.length + 1)
      node.synced = null
      node.syncedSize = node.size
    }
    this.#dirty.clear()
    this.#watchers.clear()
  }

  watch(path: string, onChange: () => void): () => void {
    const watchers = this.#watchers.get(path) ?? new Set()
    this.#watchers.set(path, watchers.add(onChange))
    return () => watchers.delete(onChange)
  }

  touch(node: Inode, mtimeNs: bigint | null): void {
    node.ctimeNs = this.#tick()
    if (mtimeNs !== null) node.mtimeNs = mtimeNs
  }

  setMode(node: Inode, mode: number): void {
    node.mode = mode
    node.ctimeNs = this.#tick()
  }

  /** Every path below a folder, with what is there. */
  *walk(folder: string): Generator<[string, Inode]> {
    const node = this.look(folder, false)
    if (node?.kind !== 'folder') return
    for (const [name, child] of [...node.entries].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const path = join(folder, name)
      yield [path, child]
      yield* this.walk(path)
    }
  }

  #make(kind: Inode['kind'], mode: number): Inode {
    const at = this.#tick()
    return {
      ...{
        ino: this.#nextIno++,
        kind,
        mode,
        nlink: 0,
        room: Buffer.alloc(0),
        size: 0,
        entries: this.#noNames(),
        target: '',
      },
      ...{ mtimeNs: at, ctimeNs: at, synced: null, syncedSize: 0 },
    }
  }

  #noNames(): Names {
    return new Names(name => this.keyOf(name))
  }

  /** What the disk compares of a name or path. */
  keyOf(name: string): string {
    switch (this.naming) {
      case 'exact':
        return name
      case 'windows':
        return name.toLowerCase()
      case 'macos':
        return comparable(name, 'darwin')
    }
  }

  #put(folder: Inode, name: string, node: Inode, path: string): void {
    folder.entries.set(name, node)
    node.nlink++
    this.#undo.push(() => folder.entries.delete(name))
    this.#touched(folder, path)
  }

  #take(folder: Inode, name: string, path: string): void {
    const node = folder.entries.get(name)
    if (node === undefined) return
    folder.entries.delete(name)
    node.nlink--
    this.#undo.push(() => folder.entries.set(name, node))
    this.#touched(folder, path)
  }

  #touched(folder: Inode, path: string): void {
    folder.mtimeNs = this.#tick()
    folder.ctimeNs = folder.mtimeNs
    for (const tell of [...(this.#watchers.get(dirname(path)) ?? [])]) tell()
  }

  #beforeWrite(node: Inode, position: number): void {
    this.#dirty.add(node)
    if (node.synced === null && position < node.syncedSize)
      node.synced = Buffer.from(node.room.subarray(0, node.syncedSize))
  }

  #written(node: Inode, path: string): void {
    node.mtimeNs = this.#tick()
    node.ctimeNs = node.mtimeNs
    for (const tell of [...(this.#watchers.get(dirname(path)) ?? [])]) tell()
    this.onChange(path, 'written')
  }

  /** Never the same twice. */
  #tick(): bigint {
    return BigInt(this.#now()) * 1_000_000n + (++this.#ticks % 1_000_000n)
  }
}
