import { createHash } from 'node:crypto'
import * as nodeModule from 'node:module'
import * as os from 'node:os'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compileFunction } from 'node:vm'
import { build, type Plugin } from 'esbuild'
import type { Kernel, Process } from './kernel.ts'

/** Where codemachine is installed on the machine. */
export const INSTALLED = '/opt/codemachine'

/** What the bundled sources give. */
export type Program = typeof import('./door.ts')

/** One text of a source in the place of another; it fails where that is not there. */
export interface Replacement {
  file: string
  from: string
  to: string
}

/** Names of a program's surroundings, in the place of which it gets those of the machine. */
const GLOBALS = [
  'require',
  'process',
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'setImmediate',
  'clearImmediate',
  'Date',
  'performance',
  'Math',
  'crypto',
  'fetch',
] as const

/** The shipped sources as one function of their surroundings: each call of it is a process with a memory of its own. */
export async function bundleProgram(replacements: readonly Replacement[] = []): Promise<string> {
  const replaced = new Set<Replacement>()
  const replace: Plugin = {
    name: 'replace',
    setup(builds) {
      if (replacements.length === 0) return
      builds.onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, async ({ path }) => {
        const { readFile } = await import('node:fs/promises')
        let contents = await readFile(path, 'utf8')
        for (const each of replacements.filter(({ file }) => path === resolve(file))) {
          if (contents.split(each.from).length !== 2) throw new Error(`${each.file} does not have once: ${each.from}`)
          contents = contents.replace(each.from, () => each.to)
          replaced.add(each)
        }
        return { contents, loader: 'ts' }
      })
    },
  }
  const { outputFiles } = await build({
    entryPoints: ['simulation/door.ts'],
    bundle: true,
    write: false,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
    conditions: ['import', 'module'],
    mainFields: ['module', 'main'],
    supported: { 'dynamic-import': false },
    define: {
      'import.meta.dirname': JSON.stringify(`${INSTALLED}/dist`),
      'import.meta.filename': JSON.stringify(`${INSTALLED}/dist/index.js`),
      'import.meta.url': JSON.stringify(`file://${INSTALLED}/dist/index.js`),
      CODEMACHINE_SOURCE: '"simulated"',
      globalThis: 'globalThis',
    },
    external: ['pg', 'pg-boss', '@lydell/node-pty'],
    logLevel: 'error',
    plugins: [replace],
  })
  const missing = replacements.find(each => !replaced.has(each))
  if (missing !== undefined) throw new Error(`${missing.file} is not loaded.`)
  return outputFiles[0]?.text ?? ''
}

type Enter = (module: object, exports: object, ...globals: unknown[]) => void

/** Compiles what `bundleProgram` gave. */
export function compileProgram(text: string): Enter {
  return compileFunction(text, ['module', 'exports', ...GLOBALS], { filename: 'codemachine.cjs' }) as unknown as Enter
}

/** What of Node's modules a process of the machine gets, by name; what is not named here comes from Node itself. */
export type Modules = Readonly<Record<string, unknown>>

const required = nodeModule.createRequire(import.meta.url)

/** Loads the program into a process. `platform`: by which it compares names; the machine is a Linux to all else. */
export function loadProgram(
  enter: Enter,
  { kernel, owner, platform }: { kernel: Kernel; owner: Process; platform: NodeJS.Platform },
  modules: Modules,
): Program {
  const { DateOfMachine, performance, timers } = timeOf(kernel, owner)
  const math = Object.create(Math, { random: { value: () => kernel.ids.next() } })
  const processOf = {
    ...{
      pid: owner.pid,
      ppid: owner.parent,
      platform,
      arch: 'x64',
      env: owner.env,
      execPath: '/usr/bin/node',
      argv: ['node', `${INSTALLED}/dist/bin.js`],
    },
    ...{
      versions: process.versions,
      version: process.version,
      release: process.release,
      execArgv: [],
      title: 'node',
      exitCode: undefined,
    },
    cwd: () => '/work',
    kill: (pid: number, signal: string | number = 'SIGTERM') => kernel.signal(pid, signal),
    nextTick: process.nextTick,
    ...{
      on: () => {},
      once: () => {},
      off: () => {},
      removeListener: () => {},
      emit: () => false,
      emitWarning: () => {},
    },
    hrtime: Object.assign(() => [0, 0], { bigint: () => BigInt(Math.floor(kernel.monotonic() * 1e6)) }),
    stdout: { write: () => true, isTTY: false, on: () => {} },
    stderr: { write: () => true, isTTY: false, on: () => {} },
    stdin: { isTTY: false, on: () => {} },
    ...{ features: {}, config: { variables: {} }, binding: undefined },
  }
  const own: Modules = {
    ...modules,
    process: { ...processOf, default: processOf },
    crypto: withDefault({
      ...required('node:crypto'),
      randomUUID: () => kernel.ids.uuid(),
      randomBytes: (count: number) => kernel.ids.bytes(count),
    }),
    os: withDefault({
      ...os,
      hostname: () => 'machine',
      homedir: () => '/home/person',
      tmpdir: () => '/tmp',
      uptime: () => kernel.monotonic() / 1000,
    }),
    timers: withDefault(timers),
    'timers/promises': withDefault({
      setTimeout: (ms: number, value?: unknown, options?: { signal?: AbortSignal }) =>
        kernel.wait(owner, ms, options?.signal).then(() => value),
      setImmediate: (value?: unknown) => new Promise(done => kernel.soon(owner, () => done(value))),
    }),
    perf_hooks: withDefault({ performance }),
    module: withDefault({
      ...nodeModule,
      createRequire: () => Object.assign((name: string) => give(name), { resolve: notInstalled }),
    }),
  }
  const give = (name: string): unknown => {
    if (name.startsWith('file:')) return shippedModule(fileURLToPath(name))
    if (name.startsWith(INSTALLED)) return shippedModule(name)
    const bare = name.replace(/^node:/, '')
    return own[bare] ?? required(name)
  }
  // Node's own answers on another thread, whenever that has the time.
  const digest = (name: string, data: Uint8Array) =>
    new Promise(done => kernel.soon(owner, () => done(createHash(name.replace('-', '')).update(data).digest())))
  const webCrypto = {
    randomUUID: () => kernel.ids.uuid(),
    getRandomValues: (into: Uint8Array) => kernel.ids.fill(into),
    subtle: { digest },
  }
  const away = () => Promise.reject(new TypeError('fetch failed'))
  const module = { exports: {} as Program }
  enter(
    module,
    module.exports,
    give,
    processOf,
    timers.setTimeout,
    timers.clearTimeout,
    timers.setInterval,
    timers.clearInterval,
    timers.setImmediate,
    timers.clearImmediate,
    DateOfMachine,
    performance,
    math,
    webCrypto,
    away,
  )
  return module.exports
}

function withDefault<T extends object>(module: T): T & { default: T } {
  return { ...module, default: module }
}

/** No package lies beside codemachine. */
function notInstalled(name: string): never {
  throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' })
}

/** A file of the package that is loaded by its path. */
function shippedModule(path: string): unknown {
  return required(resolve(path.replace(`${INSTALLED}/`, '')))
}

function timeOf(kernel: Kernel, owner: Process) {
  class SimulatedDate extends Date {
    constructor(...given: unknown[]) {
      if (given.length === 0) super(kernel.now())
      else super(...(given as [number]))
    }
    static override now(): number {
      return kernel.now()
    }
  }
  const handle = (task: ReturnType<Kernel['timer']>) => ({
    task,
    unref() {
      return this
    },
    ref() {
      return this
    },
    hasRef: () => true,
    [Symbol.toPrimitive]: () => 1,
  })
  const timer = (run: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) =>
    handle(kernel.timer(owner, Math.max(1, Number(ms) || 0), () => run(...given)))
  const interval = (run: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) => {
    const again = () => {
      made.task = kernel.timer(owner, Math.max(1, ms), () => {
        again()
        run(...given)
      })
    }
    const made = handle(kernel.timer(owner, 0, () => {}))
    again()
    return made
  }
  const clear = (given?: { task: ReturnType<Kernel['timer']> } | null) => {
    if (given?.task) kernel.cancel(given.task)
  }
  const immediate = (run: (...given: unknown[]) => void, ...given: unknown[]) => {
    const made = { isOff: false }
    kernel.soon(owner, () => made.isOff || run(...given))
    return made
  }
  const timers = {
    ...{ setTimeout: timer, clearTimeout: clear, setInterval: interval, clearInterval: clear, setImmediate: immediate },
    clearImmediate: (given?: { isOff: boolean }) => {
      if (given) given.isOff = true
    },
  }
  return {
    DateOfMachine: SimulatedDate,
    performance: { now: () => kernel.monotonic(), timeOrigin: 0 },
    timers,
  }
}
