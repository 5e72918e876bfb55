import { EventEmitter } from 'node:events'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { type Agent, Codex } from './codex.ts'
import { Disk, type Naming } from './disk.ts'
import { filesOf, type ProcEntry } from './files.ts'
import { commitAll, runGit } from './git.ts'
import { type Disturbance, errnoError, Kernel, Killed, type Process, Random } from './kernel.ts'
import { type compileProgram, INSTALLED, loadProgram, type Program } from './program.ts'

export const WORK = '/work'
export const HOME = '/home/person'

/** What every process of a person has in its environment. */
export const ENV: Readonly<NodeJS.ProcessEnv> = {
  HOME,
  PATH: '/usr/bin:/bin',
  XDG_CONFIG_HOME: `${HOME}/.config`,
  CODEX_HOME: `${HOME}/.codex`,
  LANG: 'C.UTF-8',
}

/** One machine with a project on it, on which the shipped program, git and codex run. */
export class Machine {
  readonly kernel: Kernel
  readonly disk: Disk
  readonly random: Random
  readonly #enter: ReturnType<typeof compileProgram>
  readonly #agent: Agent
  /** What the shipped program, and git on its behalf, has changed. */
  readonly written = new Set<string>()

  constructor(
    seed: string,
    plan: readonly Disturbance[],
    enter: ReturnType<typeof compileProgram>,
    naming: Naming,
    agent: (machine: Machine) => Agent,
  ) {
    this.kernel = new Kernel(seed, plan)
    this.random = new Random(`${seed} machine`)
    this.disk = new Disk(() => this.kernel.now(), naming)
    this.#enter = enter
    this.kernel.onPowerLoss = () => this.disk.lose(new Random(`${seed} power ${this.kernel.bootId}`))
    this.#install()
    this.disk.onChange = path => {
      if (this.kernel.acting !== null) this.written.add(path)
    }
    this.#agent = agent(this)
  }

  #install(): void {
    const { disk } = this
    for (const folder of ['/tmp', '/home/person/.codex', `${HOME}/.config/codemachine`, '/proc', WORK])
      disk.makeFolders(folder)
    for (const program of ['/usr/bin/git', '/usr/bin/codex', '/usr/bin/node', '/bin/sh', '/bin/false'])
      disk.put(program, `${program}\n`, 0o755)
    disk.put('/etc/os-release', 'NAME=Simulated\n')
    for (const [path, bytes] of shipped()) disk.put(join(INSTALLED, path), bytes)
    disk.syncAll()
  }

  /** Starts the shipped program as a process of its own. */
  startProgram(words: readonly string[], isExaminer = false): { process: Process; program: Program } {
    const process = this.kernel.start({
      command: ['/usr/bin/node', `${INSTALLED}/dist/bin.js`, ...words],
      env: ENV,
      parent: 1,
      isExaminer,
    })
    const { fs, promises } = filesOf(this.kernel, this.disk, process, path => this.#proc(path, process))
    const child = {
      spawn: (path: string, args: readonly string[], options: SpawnOptions) =>
        this.#spawn(process, path, args, options),
      execFile: () => {
        throw new Error('execFile is not simulated')
      },
      spawnSync: () => {
        throw new Error('spawnSync is not simulated')
      },
    }
    // It compares names on Windows as on macOS.
    const platform = this.disk.naming === 'exact' ? 'linux' : 'darwin'
    const program = loadProgram(
      this.#enter,
      { kernel: this.kernel, owner: process, platform },
      {
        fs,
        'fs/promises': promises,
        child_process: { ...child, default: child },
      },
    )
    return { process, program }
  }

  /** Runs git at once, for the person. */
  commit(words: string): void {
    commitAll(this.disk, WORK, words)
  }

  #proc(path: string, self: Process): ProcEntry | null {
    const [, pid = '', name = ''] = path.match(/^\/proc\/([^/]+)\/?(.*)$/) ?? []
    if (path === '/proc') return { names: [...this.kernel.processes.keys()].map(String) }
    if (path === '/proc/sys/kernel/random/boot_id') return { content: Buffer.from(`${this.kernel.bootId}\n`) }
    if (pid === 'self' && name === 'ns/pid') return { target: 'pid:[1]' }
    const process = pid === 'self' ? self : this.kernel.processes.get(Number(pid))
    if (process === undefined) return null
    const rest = Array.from({ length: 15 }, () => '0').join(' ')
    const stat = `${process.pid} (${process.command[0]?.split('/').at(-1)}) S ${process.parent} ${process.pid} ${process.pid} ${rest} ${process.startTicks} 0 0`
    const contents: Readonly<Record<string, string>> = {
      stat,
      environ: Object.entries(process.env)
        .map(([key, value]) => `${key}=${value}\0`)
        .join(''),
      cmdline: process.command.map(each => `${each}\0`).join(''),
      status: `Name:\tx\nUid:\t1000\t1000\t1000\t1000\nSigCgt:\t0000000000004000\n`,
      comm: 'x',
      cgroup: '0::/\n',
    }
    const text = contents[name]
    return text === undefined ? (name === '' ? { names: Object.keys(contents) } : null) : { content: Buffer.from(text) }
  }

  #spawn(owner: Process, path: string, args: readonly string[], { env = {}, cwd = '/' }: SpawnOptions): Child {
    if (!owner.isAlive) throw new Killed()
    const { kernel } = this
    const program = path.split('/').at(-1) ?? ''
    let done: string | null = null
    if (!owner.isExaminer) {
      kernel.calls++
      kernel.note(`${owner.pid} spawn ${path} ${args.join(' ').slice(0, 200)}`)
      done = kernel.takeDisturbance(each => each === 'spawn' || (program === 'git' && each.startsWith('git-')))
    }
    const child = new Child()
    if (done === 'spawn' || this.disk.look(path) === null || this.disk.look(cwd) === null) {
      child.refuse(errnoError(done === 'spawn' ? 'EAGAIN' : 'ENOENT', `spawn ${path}`, path))
      return child
    }
    const process = kernel.start({ command: [path, ...args], env, parent: owner.pid })
    child.began(kernel, process)
    const before = owner.onEnd
    owner.onEnd = (code, signal) => {
      before?.(code, signal)
      // The system closes what a dead process held.
      if (!child.stdin.writableEnded) child.stdin.end()
    }
    if (program === 'git') this.#git(process, child, args, { env, cwd }, done)
    else if (program === 'codex') new Codex({ kernel, process, child, args, agent: this.#agent }).listen()
    else throw new Error(`Nothing is known of ${path}`)
    return child
  }

  #git(
    process: Process,
    child: Child,
    args: readonly string[],
    { env, cwd }: Required<SpawnOptions>,
    trouble: string | null,
  ): void {
    const { kernel, disk, random } = this
    const input: Buffer[] = []
    child.stdin.on('data', (chunk: Buffer) => input.push(chunk))
    child.stdin.on('end', () => {
      const ms = trouble === 'git-late' ? random.one([3_000, 25_000, 700_000]) : 5 + random.below(40)
      kernel.timer(process, ms, () => {
        if (trouble === 'git-128') return child.finish(128, '', 'fatal: unable to read the repository\n')
        kernel.acting = process
        const { code, stdout, stderr } = runGit(disk, args, env, cwd, Buffer.concat(input))
        kernel.acting = null
        if (trouble !== 'git-cut') return child.finish(code, stdout, stderr)
        child.stdout.write(Buffer.from(stdout).subarray(0, Buffer.from(stdout).length >> 1))
        kernel.end(process, null, 'SIGKILL')
      })
    })
  }
}

interface SpawnOptions {
  env?: NodeJS.ProcessEnv
  cwd?: string
}

/** A child as Node gives it. */
export class Child extends EventEmitter {
  pid: number | undefined
  exitCode: number | null = null
  signalCode: string | null = null
  readonly stdin = new PassThrough()
  readonly stdout = new PassThrough()
  readonly stderr = new PassThrough()
  #kernel: Kernel | null = null
  #process: Process | null = null

  began(kernel: Kernel, process: Process): void {
    this.#kernel = kernel
    this.#process = process
    this.pid = process.pid
    process.onEnd = (code, signal) => {
      this.exitCode = code
      this.signalCode = signal
      this.emit('exit', code, signal)
      let left = 2
      const closed = () => {
        if (--left === 0) this.emit('close', code, signal)
      }
      for (const stream of [this.stdout, this.stderr]) {
        if (stream.closed || stream.destroyed) closed()
        else stream.once('close', closed)
        stream.end()
      }
      this.stdin.destroy()
    }
  }

  refuse(error: Error): void {
    process.nextTick(() => {
      this.emit('error', error)
      for (const stream of [this.stdin, this.stdout, this.stderr]) stream.destroy()
      this.emit('close', -1, null)
    })
  }

  finish(code: number, stdout: string | Buffer, stderr: string): void {
    if (this.#process === null || !this.#process.isAlive) return
    this.stdout.write(stdout)
    this.stderr.write(stderr)
    this.#kernel?.end(this.#process, code)
  }

  kill(signal: string = 'SIGTERM'): boolean {
    if (this.pid === undefined || !this.#process?.isAlive) return false
    return this.#kernel?.signal(this.pid, signal) ?? false
  }

  get stdio() {
    return [this.stdin, this.stdout, this.stderr]
  }

  unref(): void {}
  ref(): void {}
}

let files: [string, Buffer][] | null = null

/** What of the package lies beside its bundle. */
function shipped(): [string, Buffer][] {
  const inside = (path: string): [string, Buffer][] =>
    statSync(path).isDirectory()
      ? readdirSync(path)
          .sort()
          .flatMap(name => inside(join(path, name)))
      : [[path, readFileSync(path)]]
  files ??= ['package.json', 'settings.js', 'prompts', 'config'].flatMap(inside)
  return files
}
