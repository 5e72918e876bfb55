import { EventEmitter } from 'node:events'
import { constants } from 'node:fs'
import { join, resolve } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Disk, Inode } from './disk.ts'
import { errnoError, type Kernel, Killed, type Process } from './kernel.ts'

type Path = string | Buffer | URL
type Kind = 'read' | 'open' | 'write' | 'name' | 'rename' | 'sync'

/** What disturbances can be done to which calls, and the error that comes of them; null: one of its own. */
const FAULTS: Readonly<Record<string, { kinds: readonly Kind[]; code: string | null }>> = {
  enospc: { kinds: ['write', 'name'], code: 'ENOSPC' },
  eio: { kinds: ['read', 'open', 'write', 'name', 'rename', 'sync'], code: 'EIO' },
  'eio-write': { kinds: ['write'], code: 'EIO' },
  emfile: { kinds: ['open'], code: 'EMFILE' },
  rename: { kinds: ['rename'], code: 'EIO' },
  fsync: { kinds: ['sync'], code: 'EIO' },
  short: { kinds: ['write'], code: null },
  // Done before the call: see `isLate`.
  late: { kinds: [], code: null },
  'kill-open': { kinds: ['open'], code: null },
}

interface OpenFile {
  node: Inode
  path: string
  position: number
  appends: boolean
  content: Buffer | null
}

const resolved = new Map<string, string>()

function pathOf(path: Path): string {
  if (path instanceof URL) return fileURLToPath(path)
  const text = typeof path === 'string' ? path : path.toString('utf8')
  const known = resolved.get(text)
  if (known !== undefined) return known
  if (resolved.size > 10_000) resolved.clear()
  const found = resolve('/', text)
  resolved.set(text, found)
  return found
}

/** `node:fs` and `node:fs/promises` as one process of the machine has them. */
export function filesOf(kernel: Kernel, disk: Disk, process: Process, proc: (path: string) => ProcEntry | null) {
  const open = new Map<number, OpenFile>()
  let nextFd = 10

  /** What is done to a call, or null; throws the error that it gets. Where the process is killed nothing is done, or all of it. */
  function disturb(kind: Kind, name: string, path: string): 'short' | 'kill-after' | null {
    // What only looks does not count: a process that dies there dies before its next change.
    const changes = kind !== 'read' && kind !== 'open'
    if (changes) kernel.calls++
    kernel.note(`${process.pid} ${name} ${path}`)
    const done = kernel.takeDisturbance(each => {
      const [what = '', place = ''] = each.split('@')
      const fits = FAULTS[what]?.kinds.includes(kind) ?? (changes && what !== 'spawn' && !what.startsWith('git-'))
      return fits && path.includes(place)
    })
    if (done === null || done === 'short' || done === 'kill-after') return done
    const code = FAULTS[done]?.code
    if (code) throw errnoError(code, name, path)
    kernel.onDisturbance(done === 'kill-open' ? 'kill' : done, process)
    if (!process.isAlive) throw new Killed()
    return null
  }

  function now<T>(kind: Kind, name: string, path: Path | number, act: (part: 'short' | null) => T): T {
    if (!process.isAlive) throw new Killed()
    const shown = shownPath(path)
    const isUndisturbed = process.isExaminer || shown.startsWith('/proc') || shown.startsWith('/opt/codemachine')
    const part = isUndisturbed ? null : disturb(kind, name, shown)
    kernel.acting = process
    try {
      const value = act(part === 'short' ? 'short' : null)
      if (part !== 'kill-after') return value
    } finally {
      kernel.acting = null
    }
    kernel.onDisturbance('kill', process)
    throw new Killed()
  }

  function later<T>(kind: Kind, name: string, path: Path | number, act: (part: 'short' | null) => T): Promise<T> {
    return new Promise((done, fail) => {
      const go = () => {
        try {
          done(now(kind, name, path, act))
        } catch (error) {
          if (!(error instanceof Killed)) fail(error)
        }
      }
      kernel.soon(process, () => {
        if (isLate(kind, path)) kernel.timer(process, kernel.ids.below(2_000), go)
        else go()
      })
    })
  }

  /** Whether the process stands still before the call, as on a machine that is busy. */
  function isLate(kind: Kind, path: Path | number): boolean {
    if (kind === 'read' || kind === 'open' || process.isExaminer || !process.isAlive) return false
    const fits = (each: string) => /^late(?:@|$)/.test(each) && shownPath(path).includes(each.split('@')[1] ?? '')
    return kernel.takeDisturbance(fits) !== null
  }

  const shownPath = (path: Path | number) =>
    typeof path === 'number' ? (open.get(path)?.path ?? String(path)) : pathOf(path)

  function statsOf(node: Inode, options?: { bigint?: boolean }) {
    const mode = node.mode | (node.kind === 'file' ? 0o100000 : node.kind === 'folder' ? 0o040000 : 0o120000)
    const size = node.kind === 'link' ? node.target.length : node.kind === 'folder' ? 4096 : node.size
    const numbers = {
      dev: 1,
      ino: node.ino,
      mode,
      nlink: node.kind === 'folder' ? Math.min(1, node.nlink) * 2 : node.nlink,
      uid: 1000,
      gid: 1000,
      rdev: 0,
      size,
      blksize: 4096,
      blocks: Math.ceil(size / 512),
    }
    const ms = (ns: bigint) => Number(ns) / 1e6
    const times = {
      atimeMs: ms(node.mtimeNs),
      mtimeMs: ms(node.mtimeNs),
      ctimeMs: ms(node.ctimeNs),
      birthtimeMs: ms(node.ctimeNs),
    }
    const dates = {
      atime: new Date(times.atimeMs),
      mtime: new Date(times.mtimeMs),
      ctime: new Date(times.ctimeMs),
      birthtime: new Date(times.birthtimeMs),
    }
    const kinds = kindsOf(node.kind)
    if (!options?.bigint) return { ...numbers, ...times, ...dates, ...kinds }
    const big = Object.fromEntries(Object.entries({ ...numbers }).map(([name, value]) => [name, BigInt(value)]))
    const ns = { atimeNs: node.mtimeNs, mtimeNs: node.mtimeNs, ctimeNs: node.ctimeNs, birthtimeNs: node.ctimeNs }
    return {
      ...big,
      ...ns,
      ...Object.fromEntries(Object.entries(times).map(([name, value]) => [name, BigInt(Math.floor(value))])),
      ...dates,
      ...kinds,
    }
  }

  function opened(path: Path, flags: string | number = 'r', mode = 0o666): number {
    const at = pathOf(path)
    const given = typeof flags === 'number' ? flags : FLAGS[flags]
    if (given === undefined) throw new Error(`No flags: ${flags}`)
    const virtual = at.startsWith('/proc') ? proc(at) : null
    const fd = nextFd++
    if (at.startsWith('/proc')) {
      if (virtual?.content === undefined) throw errnoError('ENOENT', 'open', at)
      open.set(fd, { node: disk.root, path: at, position: 0, appends: false, content: virtual.content })
      return fd
    }
    const { node } = disk.find(at, (given & constants.O_NOFOLLOW) === 0)
    const writes = (given & (constants.O_WRONLY | constants.O_RDWR)) !== 0
    const refusal = refusalOf(node, given, writes)
    if (refusal !== null) throw errnoError(refusal, 'open', at)
    const file = node ?? disk.create(at, 'file', mode & ~0o022)
    if ((given & constants.O_TRUNC) !== 0 && writes) disk.truncate(file, 0, at)
    open.set(fd, { node: file, path: at, position: 0, appends: (given & constants.O_APPEND) !== 0, content: null })
    return fd
  }

  /** Why something cannot be opened so; null if it can. */
  function refusalOf(node: Inode | null, flags: number, writes: boolean): string | null {
    if (node === null) return (flags & constants.O_CREAT) === 0 ? 'ENOENT' : null
    if ((flags & constants.O_EXCL) !== 0) return 'EEXIST'
    if (node.kind === 'link') return 'ELOOP'
    if (node.kind === 'folder') return writes ? 'EISDIR' : null
    return (flags & constants.O_DIRECTORY) === 0 ? null : 'ENOTDIR'
  }

  function file(fd: number): OpenFile {
    const found = open.get(fd)
    if (found === undefined) throw errnoError('EBADF', 'read')
    return found
  }

  function readInto(
    fd: number,
    buffer: NodeJS.ArrayBufferView,
    offset = 0,
    length = buffer.byteLength - offset,
    position: number | bigint | null = null,
  ): number {
    const of = file(fd)
    if (of.content === null && of.node.kind === 'folder') throw errnoError('EISDIR', 'read')
    const bytes = of.content ?? of.node.room.subarray(0, of.node.size)
    const from = position === null || Number(position) < 0 ? of.position : Number(position)
    const target = Buffer.from(buffer.buffer, buffer.byteOffset, buffer.byteLength)
    const count = from >= bytes.length ? 0 : bytes.copy(target, offset, from, Math.min(bytes.length, from + length))
    if (position === null || Number(position) < 0) of.position += count
    return count
  }

  function writeFrom(fd: number, bytes: Buffer, position: number | null): number {
    const of = file(fd)
    const at = of.appends ? of.node.size : (position ?? of.position)
    disk.write(of.node, bytes, at, of.path)
    if (position === null) of.position = at + bytes.length
    return bytes.length
  }

  function asBytes(data: unknown, encoding?: BufferEncoding): Buffer {
    if (typeof data === 'string') return Buffer.from(data, encoding)
    if (ArrayBuffer.isView(data)) return Buffer.from(data.buffer, data.byteOffset, data.byteLength)
    throw new TypeError('No data.')
  }

  const half = (bytes: Buffer, part: 'short' | null) =>
    part === 'short' ? bytes.subarray(0, Math.max(1, bytes.length >> 1)) : bytes

  function written(
    fd: number,
    data: unknown,
    offset: unknown,
    length: unknown,
    position: unknown,
    part: 'short' | null,
  ): number {
    const bytes = typeof data === 'string' ? Buffer.from(data) : asBytes(data)
    const from = typeof data === 'string' || typeof offset !== 'number' ? 0 : offset
    const many = typeof data === 'string' || typeof length !== 'number' ? bytes.length - from : length
    const at = typeof data === 'string' ? offset : position
    return writeFrom(fd, half(bytes.subarray(from, from + many), part), typeof at === 'number' ? at : null)
  }

  function direntsOf(path: string): { name: string; kind: Inode['kind'] }[] {
    if (path.startsWith('/proc')) {
      const names = proc(path)?.names
      if (names === undefined) throw errnoError('ENOENT', 'scandir', path)
      return names.map(name => ({ name, kind: 'folder' }))
    }
    return [...disk.folderAt(path).entries]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, { kind }]) => ({ name, kind }))
  }

  function listed(
    path: Path,
    options?: { withFileTypes?: boolean; recursive?: boolean; encoding?: string } | string,
  ): unknown[] {
    const top = pathOf(path)
    const {
      withFileTypes = false,
      recursive = false,
      encoding = undefined,
    } = typeof options === 'string' ? { encoding: options } : (options ?? {})
    const asGiven = (name: string) =>
      encoding === 'buffer' ? Buffer.from(name) : encoding === 'latin1' ? Buffer.from(name).toString('latin1') : name
    const all = (folder: string, prefix: string): unknown[] =>
      direntsOf(folder).flatMap(({ name, kind }) => {
        const entry = withFileTypes
          ? { name: asGiven(name), parentPath: folder, path: folder, ...kindsOf(kind) }
          : asGiven(prefix + name)
        return [entry, ...(recursive && kind === 'folder' ? all(join(folder, name), `${prefix}${name}/`) : [])]
      })
    return all(top, '')
  }

  function stat(path: Path, follow: boolean, options?: { bigint?: boolean; throwIfNoEntry?: boolean }) {
    const at = pathOf(path)
    if (at.startsWith('/proc')) {
      if (proc(at) === null) throw errnoError('ENOENT', 'stat', at)
      return statsOf(disk.root, options)
    }
    return statsOf(disk.get(at, follow), options)
  }

  function link(path: Path): string {
    const at = pathOf(path)
    const target = at.startsWith('/proc') ? proc(at)?.target : disk.get(at, false).target
    if (!target) throw errnoError(at.startsWith('/proc') ? 'ENOENT' : 'EINVAL', 'readlink', at)
    return target
  }

  function makeFolder(path: Path, options?: number | { recursive?: boolean; mode?: number }): void {
    const { recursive = false, mode = 0o777 } = typeof options === 'number' ? { mode: options } : (options ?? {})
    if (recursive) disk.makeFolders(pathOf(path), mode & ~0o022)
    else disk.create(pathOf(path), 'folder', mode & ~0o022)
  }

  function remove(
    path: Path,
    { force = false, recursive = false }: { force?: boolean; recursive?: boolean } = {},
  ): void {
    const at = pathOf(path)
    const node = disk.look(at, false)
    if (node === null) {
      if (force) return
      throw errnoError('ENOENT', 'rm', at)
    }
    if (node.kind === 'folder' && !recursive)
      throw Object.assign(errnoError('EISDIR', 'rm', at), { code: 'ERR_FS_EISDIR' })
    disk.removeAll(at)
  }

  function copy(from: Path, to: Path): void {
    const bytes = disk.read(pathOf(from))
    const at = pathOf(to)
    const node = disk.look(at) ?? disk.create(at, 'file', disk.get(pathOf(from)).mode)
    disk.truncate(node, 0, at)
    disk.write(node, bytes, 0, at)
  }

  function content(path: Path | number, options?: { encoding?: BufferEncoding } | BufferEncoding): string | Buffer {
    const encoding = typeof options === 'string' ? options : options?.encoding
    const at = typeof path === 'number' ? file(path).path : pathOf(path)
    const bytes = at.startsWith('/proc') ? proc(at)?.content : disk.read(at)
    if (bytes === undefined) throw errnoError('ENOENT', 'open', at)
    return encoding ? bytes.toString(encoding) : bytes
  }

  const nsOf = (time: number | string | Date): bigint =>
    BigInt(Math.round((time instanceof Date ? time.getTime() / 1000 : Number(time)) * 1e9))

  function handleOf(fd: number) {
    const { path } = file(fd)
    const on = <T>(kind: Kind, name: string, act: (part: 'short' | null) => T) =>
      later(kind, name, fd, part => {
        file(fd)
        return act(part)
      })
    const close = async () => {
      if (open.has(fd)) await later('read', 'close', '/proc', () => open.delete(fd))
    }
    return {
      fd,
      read: (
        given?:
          | NodeJS.ArrayBufferView
          | { buffer?: Buffer; offset?: number; length?: number; position?: number | null },
        offset?: number,
        length?: number,
        position?: number | null,
      ) => {
        const asked =
          given === undefined || !ArrayBuffer.isView(given)
            ? (given ?? {})
            : { buffer: given as Buffer, offset, length, position }
        const buffer = asked.buffer ?? Buffer.alloc(16384)
        return on('read', 'read', () => ({
          bytesRead: readInto(
            fd,
            buffer,
            asked.offset ?? 0,
            asked.length ?? buffer.byteLength - (asked.offset ?? 0),
            asked.position ?? null,
          ),
          buffer,
        }))
      },
      write: (data: unknown, offset?: unknown, length?: unknown, position?: unknown) =>
        on('write', 'write', part => ({
          bytesWritten: written(fd, data, offset, length, position, part),
          buffer: data,
        })),
      writeFile: (data: unknown, options?: BufferEncoding) =>
        on('write', 'write', () => void writeFrom(fd, asBytes(data, options), null)),
      appendFile: (data: unknown) => on('write', 'write', () => void writeFrom(fd, asBytes(data), null)),
      readFile: (options?: BufferEncoding | { encoding?: BufferEncoding }) =>
        on('read', 'read', () => {
          const of = file(fd)
          if (of.content === null && of.node.kind === 'folder') throw errnoError('EISDIR', 'read')
          const bytes = of.content ?? disk.bytesOf(of.node)
          const encoding = typeof options === 'string' ? options : options?.encoding
          return encoding ? bytes.toString(encoding) : bytes
        }),
      sync: () => on('sync', 'fsync', () => disk.sync(file(fd).node)),
      datasync: () => on('sync', 'fdatasync', () => disk.sync(file(fd).node)),
      stat: (options?: { bigint?: boolean }) => on('read', 'fstat', () => statsOf(file(fd).node, options)),
      truncate: (size = 0) => on('write', 'ftruncate', () => disk.truncate(file(fd).node, size, path)),
      chmod: (mode: number) => on('name', 'fchmod', () => disk.setMode(file(fd).node, mode)),
      utimes: (_: unknown, mtime: number) => on('name', 'futimes', () => disk.touch(file(fd).node, nsOf(mtime))),
      createReadStream: () =>
        Readable.from(
          (async function* () {
            yield await on('read', 'read', () => disk.bytesOf(file(fd).node))
          })(),
        ),
      close,
      [Symbol.asyncDispose]: close,
    }
  }

  const openHandle = async (path: Path, flags?: string | number, mode?: number) =>
    handleOf(await later('open', 'open', path, () => opened(path, flags, mode)))

  async function* entriesOf(path: Path) {
    for (const entry of await later('open', 'opendir', path, () => listed(path, { withFileTypes: true }))) yield entry
  }

  const promises = {
    constants,
    open: openHandle,
    opendir: async (path: Path) => {
      await later('open', 'opendir', path, () => void direntsOf(pathOf(path)))
      const entries = entriesOf(path)
      return Object.assign(entries, {
        close: async () => void (await entries.return()),
        read: async () => (await entries.next()).value ?? null,
        [Symbol.asyncDispose]: async () => {},
      })
    },
    lstat: (path: Path, options?: { bigint?: boolean }) =>
      later('read', 'lstat', path, () => stat(path, false, options)),
    stat: (path: Path, options?: { bigint?: boolean }) => later('read', 'stat', path, () => stat(path, true, options)),
    access: (path: Path, mode = 0) =>
      later('read', 'access', path, () => {
        const node = pathOf(path).startsWith('/proc') ? disk.root : disk.get(pathOf(path))
        if ((mode & constants.X_OK) !== 0 && (node.mode & 0o111) === 0)
          throw errnoError('EACCES', 'access', pathOf(path))
      }),
    realpath: (path: Path) => later('read', 'realpath', path, () => realOf(path)),
    readlink: (path: Path) => later('read', 'readlink', path, () => link(path)),
    readdir: (path: Path, options?: { withFileTypes?: boolean; recursive?: boolean }) =>
      later('read', 'readdir', path, () => listed(path, options)),
    readFile: (path: Path, options?: BufferEncoding) => later('read', 'readFile', path, () => content(path, options)),
    writeFile: async (path: Path, data: unknown, options?: WriteOptions) => {
      const { encoding, mode, flag } = writeOptions(options)
      await using handle = await openHandle(path, flag, mode)
      await handle.writeFile(data, encoding)
    },
    mkdir: (path: Path, options?: number | { recursive?: boolean; mode?: number }) =>
      later('name', 'mkdir', path, () => makeFolder(path, options)),
    mkdtemp: (prefix: string) =>
      later('name', 'mkdtemp', prefix, () => {
        const made = `${prefix}${kernel.ids.bytes(3).toString('hex')}`
        makeFolder(made, 0o700)
        return made
      }),
    rmdir: (path: Path) => later('name', 'rmdir', path, () => disk.removeFolder(pathOf(path))),
    unlink: (path: Path) => later('name', 'unlink', path, () => disk.unlink(pathOf(path))),
    rm: (path: Path, options?: { force?: boolean; recursive?: boolean }) =>
      later('name', 'rm', path, () => remove(path, options)),
    rename: (from: Path, to: Path) => later('rename', 'rename', to, () => disk.rename(pathOf(from), pathOf(to))),
    link: (from: Path, to: Path) => later('name', 'link', to, () => disk.link(pathOf(from), pathOf(to))),
    symlink: (target: Path, path: Path) =>
      later('name', 'symlink', path, () => void disk.create(pathOf(path), 'link', 0o777, String(target))),
    copyFile: (from: Path, to: Path) => later('write', 'copyFile', to, () => copy(from, to)),
    chmod: (path: Path, mode: number) => later('name', 'chmod', path, () => disk.setMode(disk.get(pathOf(path)), mode)),
    utimes: (path: Path, _: unknown, mtime: number | Date) =>
      later('name', 'utimes', path, () => disk.touch(disk.get(pathOf(path)), nsOf(mtime))),
    lutimes: (path: Path, _: unknown, mtime: number | Date) =>
      later('name', 'lutimes', path, () => disk.touch(disk.get(pathOf(path), false), nsOf(mtime))),
  }

  function realOf(path: Path): string {
    const { node, real } = disk.find(pathOf(path))
    if (node === null) throw errnoError('ENOENT', 'realpath', pathOf(path))
    return real
  }
  const realpathSync = Object.assign((path: Path) => now('read', 'realpath', path, () => realOf(path)), {
    native: (path: Path) => now('read', 'realpath', path, () => realOf(path)),
  })

  const called = <T>(promise: Promise<T>, callback: (error: unknown, value?: T) => void) =>
    void promise.then(value => callback(null, value), callback)
  const read = Object.assign(
    (
      fd: number,
      buffer: Buffer,
      offset: number,
      length: number,
      position: number | null,
      callback: (error: unknown, count?: number, buffer?: Buffer) => void,
    ) =>
      called(
        later('read', 'read', fd, () => readInto(fd, buffer, offset, length, position)),
        (error, count) => callback(error, count, buffer),
      ),
    {
      [promisify.custom]: async (
        fd: number,
        buffer: Buffer,
        offset: number,
        length: number,
        position: number | null,
      ) => ({
        bytesRead: await later('read', 'read', fd, () => readInto(fd, buffer, offset, length, position)),
        buffer,
      }),
    },
  )

  class SimulatedWrites extends Writable {
    #fd: number | null = null
    readonly path: string
    constructor(path: Path, { flags = 'w', mode = 0o666 }: { flags?: string; mode?: number } = {}) {
      super({ highWaterMark: 16384 })
      this.path = pathOf(path)
      this.#flags = flags
      this.#mode = mode
    }
    readonly #flags: string
    readonly #mode: number
    override _construct(callback: (error?: Error | null) => void): void {
      later('open', 'open', this.path, () => opened(this.path, this.#flags, this.#mode)).then(fd => {
        this.#fd = fd
        callback()
      }, callback)
    }
    override _write(chunk: Buffer, _: string, callback: (error?: Error | null) => void): void {
      later('write', 'write', this.path, () => void writeFrom(this.#fd ?? -1, chunk, null)).then(
        () => callback(),
        callback,
      )
    }
    override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
      if (this.#fd !== null) open.delete(this.#fd)
      callback(error)
    }
  }

  const fs = {
    constants,
    promises,
    openSync: (path: Path, flags?: string | number, mode?: number) =>
      now('open', 'open', path, () => opened(path, flags, mode)),
    closeSync: (fd: number) => void open.delete(fd),
    readSync: (fd: number, buffer: Buffer, offset?: number, length?: number, position?: number | null) =>
      now('read', 'read', fd, () => readInto(fd, buffer, offset, length, position)),
    writeSync: (fd: number, data: unknown, offset?: number, length?: number, position?: number | null) =>
      now('write', 'write', fd, part => written(fd, data, offset, length, position, part)),
    fstatSync: (fd: number, options?: { bigint?: boolean }) =>
      now('read', 'fstat', fd, () => statsOf(file(fd).node, options)),
    ftruncateSync: (fd: number, size = 0) =>
      now('write', 'ftruncate', fd, () => disk.truncate(file(fd).node, size, file(fd).path)),
    fdatasync: (fd: number, callback: (error: unknown) => void) =>
      called(
        later('sync', 'fdatasync', fd, () => disk.sync(file(fd).node)),
        callback,
      ),
    open: (path: Path, flags: string, ...rest: unknown[]) =>
      called(
        later('open', 'open', path, () => opened(path, flags)),
        rest.at(-1) as (error: unknown, fd?: number) => void,
      ),
    close: (fd: number, callback: (error: unknown) => void) =>
      called(
        later('read', 'close', '/proc', () => void open.delete(fd)),
        callback,
      ),
    read,
    statSync: (path: Path, options?: { bigint?: boolean; throwIfNoEntry?: boolean }) =>
      now('read', 'stat', path, () => orUndefined(options, () => stat(path, true, options))),
    lstatSync: (path: Path, options?: { bigint?: boolean; throwIfNoEntry?: boolean }) =>
      now('read', 'lstat', path, () => orUndefined(options, () => stat(path, false, options))),
    existsSync: (path: Path) =>
      now('read', 'access', path, () =>
        pathOf(path).startsWith('/proc') ? proc(pathOf(path)) !== null : disk.look(pathOf(path)) !== null,
      ),
    readdirSync: (path: Path, options?: { withFileTypes?: boolean }) =>
      now('read', 'readdir', path, () => listed(path, options)),
    readFileSync: (path: Path | number, options?: BufferEncoding) =>
      now('read', 'readFile', path, () => content(path, options)),
    writeFileSync: (path: Path, data: unknown, options?: WriteOptions) => {
      const { encoding, mode, flag, flush } = writeOptions(options)
      const fd = now('open', 'open', path, () => opened(path, flag, mode))
      now('write', 'write', fd, () => writeFrom(fd, asBytes(data, encoding), null))
      if (flush) now('sync', 'fsync', fd, () => disk.sync(file(fd).node))
      open.delete(fd)
    },
    readlinkSync: (path: Path) => now('read', 'readlink', path, () => link(path)),
    realpathSync,
    mkdirSync: (path: Path, options?: { recursive?: boolean; mode?: number }) =>
      now('name', 'mkdir', path, () => makeFolder(path, options)),
    renameSync: (from: Path, to: Path) => now('rename', 'rename', to, () => disk.rename(pathOf(from), pathOf(to))),
    rmSync: (path: Path, options?: { force?: boolean; recursive?: boolean }) =>
      now('name', 'rm', path, () => remove(path, options)),
    symlinkSync: (target: Path, path: Path) =>
      now('name', 'symlink', path, () => void disk.create(pathOf(path), 'link', 0o777, String(target))),
    chmodSync: (path: Path, mode: number) =>
      now('name', 'chmod', path, () => disk.setMode(disk.get(pathOf(path)), mode)),
    watch: (path: Path, given: unknown, second?: () => void) => {
      const onChange = (typeof given === 'function' ? given : second) as (() => void) | undefined
      const at = pathOf(path)
      now('read', 'watch', at, () => disk.get(at))
      const stop = disk.watch(at, () => kernel.soon(process, () => onChange?.()))
      return Object.assign(new EventEmitter(), { close: () => void stop(), unref: () => {}, ref: () => {} })
    },
    createReadStream: (path: Path) =>
      Readable.from(
        (async function* () {
          yield await later('read', 'read', path, () => content(path))
        })(),
      ),
    createWriteStream: (path: Path, options?: { flags?: string; mode?: number }) => new SimulatedWrites(path, options),
  }
  return { fs: { ...fs, default: fs }, promises: { ...promises, default: promises } }
}

function kindsOf(kind: Inode['kind']) {
  return {
    isFile: () => kind === 'file',
    isDirectory: () => kind === 'folder',
    isSymbolicLink: () => kind === 'link',
    ...{ isFIFO: never, isSocket: never, isCharacterDevice: never, isBlockDevice: never },
  }
}

function never(): boolean {
  return false
}

/** What is below /proc: a file, a folder, or a link. */
export interface ProcEntry {
  content?: Buffer
  names?: string[]
  target?: string
}

type WriteOptions = { encoding?: BufferEncoding; mode?: number; flag?: string; flush?: boolean } | BufferEncoding

function writeOptions(given: WriteOptions = {}) {
  const {
    encoding = 'utf8',
    mode = 0o666,
    flag = 'w',
    flush = false,
  } = typeof given === 'string' ? { encoding: given } : given
  return { encoding, mode, flag, flush }
}

function orUndefined<T>(options: { throwIfNoEntry?: boolean } | undefined, look: () => T): T | undefined {
  try {
    return look()
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')
    if (missing && options?.throwIfNoEntry === false) return undefined
    throw error
  }
}

const { O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND, O_EXCL } = constants
const FLAGS: Readonly<Record<string, number>> = {
  r: O_RDONLY,
  'r+': O_RDWR,
  w: O_WRONLY | O_CREAT | O_TRUNC,
  wx: O_WRONLY | O_CREAT | O_TRUNC | O_EXCL,
  'w+': O_RDWR | O_CREAT | O_TRUNC,
  'wx+': O_RDWR | O_CREAT | O_TRUNC | O_EXCL,
  a: O_WRONLY | O_CREAT | O_APPEND,
  ax: O_WRONLY | O_CREAT | O_APPEND | O_EXCL,
  'a+': O_RDWR | O_CREAT | O_APPEND,
  'ax+': O_RDWR | O_CREAT | O_APPEND | O_EXCL,
}
