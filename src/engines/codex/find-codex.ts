import { open, realpath, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, resolve } from 'node:path'
import * as v from 'valibot'
import { CODEX_VERSION } from '../../../protocol/codex.ts'
import { UserError } from '../../base/errors.ts'
import {
  isFolder,
  isWritableByAgents,
  liesIn,
  readBoundedText,
  stampOf,
  succeeds,
  type WritableByAgents,
  writeWholeFile,
} from '../../platform/files.ts'
import {
  isProgram,
  type ProcessResult,
  runProcess,
  searchedFolders,
  withSearchPathOutside,
} from '../../platform/run-process.ts'
import { copiedCodex } from './binary/copied-codex.ts'

/** The codex that runs the rounds. */
export interface CodexBinary {
  /** Absolute path of the program to start: the native binary, or the launcher if it has no native binary. */
  path: string
  /** `0.169.0`. */
  version: string
  source: 'flag' | 'CODEX_BIN' | 'PATH' | 'node_modules'
  /** npm's launcher script that led to the binary; null: found directly. */
  launcher: string | null
  /** Remarks for a person about the search, one sentence each. */
  remarks: readonly string[]
}

export interface CodexSearch {
  /** Value of `--codex-bin`, or of the person's own settings. */
  flag: string | null
  env: Readonly<NodeJS.ProcessEnv>
  /** Base of relative paths. Default: the process's directory. */
  directory?: string
  platform: NodeJS.Platform
  arch: string
  /** Root of codemachine's own package, whose node_modules are searched last. */
  packageRoot: string
  /** Places that agents can write: skip an unnamed codex there, because it runs outside of the sandbox. */
  where: WritableByAgents
  /** Folder of copies of a codex in the work directory, and if a missing copy is made. */
  copies: { folder: string; makes: boolean }
  /** File with the known output of `codex --version`; undefined: run it each time. */
  remembered?: string
}

/**
 * Finds codex: `--codex-bin`, `CODEX_BIN`, PATH, then the copy in node_modules; the first match is used. Skips candidates
 * that an agent may have written: on PATH all of them, in node_modules those in the work directory. Copies a named one in
 * the work directory into the records, and uses the copy from then on. Throws a `UserError` if it is unusable. Runs `codex
 * --version` (15 ms) unless the result for this very file is known.
 */
export async function findCodex(search: CodexSearch): Promise<CodexBinary> {
  const { source, file, passedOver } = await locate(search)
  const isNamed = source === 'flag' || source === 'CODEX_BIN'
  const found = await programOf(file, search)
  if (search.platform === 'win32' && WINDOWS_SCRIPT.test(found.path))
    throw new UserError('CM0304', `${NAMED_BY[source]} ${found.path}, which Windows does not start without a shell.`, {
      hint: 'Install codex again with `npm install --global @openai/codex`, or name its codex.exe with --codex-bin.',
    })
  const isInReach = isInWork(file, search) || isInWork(found.path, search)
  const copy = isNamed && isInReach ? await copiedCodex({ ...found, named: file, ...search.copies }) : null
  const path = copy?.path ?? found.path
  const version = await versionOf(path, NAMED_BY[source], search)
  const others = await othersThan(found.path, passedOver, search)
  const remarks = copy?.remark ? [copy.remark] : []
  if (others.length > 0) remarks.push(`${passedOverInWords(others)} The codex in use is ${path}.`)
  return { path, version, source, launcher: found.launcher, remarks }
}

/** Matches scripts. */
const WINDOWS_SCRIPT = /\.(?:cmd|bat|ps1|js)$/i

type Source = CodexBinary['source']

const NAMED_BY: Record<Source, string> = {
  flag: '--codex-bin names',
  CODEX_BIN: 'CODEX_BIN names',
  PATH: 'PATH leads to',
  node_modules: 'node_modules holds',
}

const INSTALL = 'Install codex with `npm install --global @openai/codex`, or name one with --codex-bin.'

/** A file that may be codex or its launcher. `passedOver`: earlier ones that an agent may have written. */
interface Located {
  source: Source
  file: string
  passedOver: readonly string[]
}

async function locate(search: CodexSearch): Promise<Located> {
  if (search.flag !== null)
    return { source: 'flag', file: await namedFile(search.flag, 'flag', search), passedOver: [] }
  if (search.env.CODEX_BIN) {
    const file = await namedFile(search.env.CODEX_BIN, 'CODEX_BIN', search)
    return { source: 'CODEX_BIN', file, passedOver: [] }
  }
  const { file: onPath, passedOver } = await fileOnPath('codex', search)
  if (onPath !== null) return { source: 'PATH', file: onPath, passedOver }
  const installed = launcherInNodeModules(search.packageRoot)
  if (installed !== null) {
    const { path } = await programOf(installed, search)
    if (!isInWork(installed, search) && !isInWork(path, search))
      return { source: 'node_modules', file: installed, passedOver }
    passedOver.push(installed)
  }
  throw new UserError(
    'CM0301',
    'No codex was found: neither by --codex-bin or CODEX_BIN, nor on the PATH or in node_modules.',
    { hint: passedOver.length === 0 ? INSTALL : `${passedOverInWords(passedOver)} ${INSTALL}` },
  )
}

function passedOverInWords(files: readonly string[]): string {
  return `codemachine does not use a codex that an agent can write: ${files.join(', ')}.`
}

/** True if an agent may have written it in a round, not just a writer of the temporary directory. */
function isInWork(path: string, { where }: CodexSearch): boolean {
  return liesIn(path, [...where.workDirectory, ...where.gitDirectories, ...where.elsewhere])
}

/** Returns the files that lead to another program: a checkout's own node_modules may be on PATH too. */
async function othersThan(path: string, files: readonly string[], search: CodexSearch): Promise<string[]> {
  const programs = await Promise.all(files.map(async file => ({ file, leadsTo: (await programOf(file, search)).path })))
  return programs.filter(({ leadsTo }) => leadsTo !== path).map(({ file }) => file)
}

/** Returns the file that a person named: a path, or without a slash a command on PATH. */
async function namedFile(name: string, source: 'flag' | 'CODEX_BIN', search: CodexSearch): Promise<string> {
  const place = source === 'flag' ? '--codex-bin' : 'CODEX_BIN'
  const mend = `correct ${place} or leave it out.`
  if (/[\\/]/.test(name)) {
    const path = resolve(search.directory ?? '', name)
    if (await isFile(path)) return path
    throw new UserError('CM0304', `${NAMED_BY[source]} ${path}, but there is no such file; ${mend}`)
  }
  const { file, passedOver } = await fileOnPath(name, search)
  if (file !== null) return file
  const hint = passedOver.length === 0 ? {} : { hint: passedOverInWords(passedOver) }
  throw new UserError(
    'CM0304',
    `${NAMED_BY[source]} ${name}, but there is none on PATH; name its path, or ${mend}`,
    hint,
  )
}

async function fileOnPath(
  name: string,
  { env, platform, directory, where }: CodexSearch,
): Promise<{ file: string | null; passedOver: string[] }> {
  const windows = platform === 'win32'
  const names = windows && !/\.\w+$/.test(name) ? [`${name}.exe`, `${name}.cmd`] : [name]
  const passedOver: string[] = []
  for (const { folder, isOwn } of searchedFolders(env, platform)) {
    for (const file of folder === '' ? [] : names.map(each => resolve(directory ?? '', folder, each))) {
      if (!(await (windows ? isFile(file) : isProgram(file)))) continue
      if (isOwn && !isWritableByAgents(file, where)) return { file, passedOver }
      passedOver.push(file)
    }
  }
  return { file: null, passedOver }
}

/** Returns the program behind a file; `root`: folder of all its files, null: that file only. */
async function programOf(
  file: string,
  { platform, arch }: CodexSearch,
): Promise<{ path: string; launcher: string | null; root: string | null }> {
  const directory = await packageOfLauncher(file)
  const native = directory === null ? null : await nativeBinary(directory, platform, arch)
  const path = native ?? file
  return { path, launcher: directory === null ? null : file, root: native && dirname(dirname(native)) }
}

function launcherInNodeModules(packageRoot: string): string | null {
  try {
    const manifest = createRequire(join(packageRoot, 'package.json')).resolve(`${CODEX_PACKAGE}/package.json`)
    return join(dirname(manifest), 'bin', 'codex.js')
  } catch {
    return null
  }
}

/** Timeout of a start of codex, ms: longer than any on a busy machine. */
const VERSION_MS = 10_000

/** Returns the output of `codex --version`; throws a `UserError` for an unsupported codex. */
async function versionOf(path: string, namedBy: string, search: CodexSearch): Promise<string> {
  const { remembered, copies } = search
  const program = await realpath(path).catch(() => path)
  // Take the file's stamp before the call: a file that replaces it meanwhile has another.
  const stamp = stampOf(program)
  const known = remembered === undefined || stamp === null ? null : await recall(remembered, { program, stamp })
  const version = known ?? (await askedVersion(path, namedBy, search))
  if (isOlderCodex(version, OLDEST_CODEX)) {
    throw new UserError(
      'CM0303',
      `${namedBy} ${path}, which is codex ${version}, but codemachine needs ${OLDEST_CODEX} or newer.`,
      { hint: 'Update it with `npm install --global @openai/codex@latest`, or name another one with --codex-bin.' },
    )
  }
  const isNew = known === null && copies.makes && remembered !== undefined && stamp !== null
  if (isNew && (await isNative(program))) await remember(remembered, { program, stamp, version })
  return version
}

const rememberedSchema = v.object({ program: v.string(), stamp: v.string(), version: v.string() })
type Remembered = v.InferOutput<typeof rememberedSchema>

const REMEMBERED_BYTES = 65_536

/** Returns the known version of a program if its file is unchanged; null if unknown. */
async function recall(file: string, { program, stamp }: Omit<Remembered, 'version'>): Promise<string | null> {
  const read = await readBoundedText(file, REMEMBERED_BYTES)
  if (read === 'missing' || 'problem' in read) return null
  try {
    const known = v.parse(rememberedSchema, JSON.parse(read.text))
    return known.program === program && known.stamp === stamp ? parseVersionOutput(`codex ${known.version}`) : null
  } catch {
    return null
  }
}

/** Stores a version; if that fails, the next search runs codex again. */
async function remember(file: string, known: Remembered): Promise<void> {
  await succeeds(writeWholeFile(file, JSON.stringify(known)))
}

/** Smallest codex, in bytes: codex has more than twice that, a version manager's shim less. */
const LEAST_BYTES = 100 * 1024 * 1024

/** True for codex itself. A script or a shim may start a newer one tomorrow. */
async function isNative(program: string): Promise<boolean> {
  if (!/^codex(?:\.exe)?$/i.test(basename(program))) return false
  const found = await stat(program).catch(() => null)
  if (found === null || found.size < LEAST_BYTES) return false
  return /^(?:\x7fELF|MZ|[\xce\xcf]\xfa\xed\xfe|\xca\xfe\xba\xbe)/.test(await headOf(program))
}

async function askedVersion(
  path: string,
  namedBy: string,
  { env, where, platform }: Pick<CodexSearch, 'env' | 'where' | 'platform'>,
): Promise<string> {
  const result = await runProcess(path, ['--version'], {
    // Codex writes aliases into its home at each start. A home below a file cannot exist, so this start leaves no trace. A
    // launcher looks for node on PATH.
    env: { ...withSearchPathOutside(env, where, platform), CODEX_HOME: join(path, 'none') },
    encoding: 'utf8',
    timeoutMs: VERSION_MS,
    outputLimit: 65_536,
  })
  const fault = (what: string, hint: string) => new UserError('CM0304', `${namedBy} ${path}, which ${what}.`, { hint })
  if (result.failure === 'timeout') throw fault(`did not answer \`--version\` within ${VERSION_MS / 1000} s`, INSTALL)
  if (result.failure === 'EACCES')
    throw fault('is not executable', 'Make it executable with `chmod +x`, or name another codex with --codex-bin.')
  const version = parseVersionOutput(result.stdout)
  if (version === null) throw fault(`is not codex: \`--version\` ${answerOf(result)}`, INSTALL)
  return version
}

function answerOf({ exitCode, stdout, stderr, failure }: ProcessResult): string {
  const line = `${stdout}\n${stderr}`.trim().split('\n')[0]?.slice(0, 120)
  if (line) return `answered "${line}"`
  return exitCode === null ? `could not be run (${failure})` : 'answered nothing'
}

/** Oldest supported codex: the first with permission profiles that deny reading. */
export const OLDEST_CODEX = '0.157.0'

/** Newest measured codex; `protocol/codex.ts` is its protocol. */
export const NEWEST_MEASURED_CODEX = CODEX_VERSION

/** Parses the output of `codex --version` (`codex-cli 0.170.0-alpha.1`); null if it is not codex's. */
function parseVersionOutput(output: string): string | null {
  return /^codex(?:-cli)? (\d+\.\d+\.\d+(?:[-+][\w.+-]+)?)\s*$/m.exec(output)?.[1] ?? null
}

/** True if codex `version` is older than `other`. A prerelease counts as its release. */
export function isOlderCodex(version: string, other: string): boolean {
  const [major, minor, patch] = numbersOf(version)
  const [otherMajor, otherMinor, otherPatch] = numbersOf(other)
  // A codex built from source is 0.0.0 and counts as the newest.
  if (major + minor + patch === 0) return false
  return (major - otherMajor || minor - otherMinor || patch - otherPatch) < 0
}

function numbersOf(version: string): [number, number, number] {
  const match = /^(\d+)\.(\d+)\.(\d+)/.exec(version)
  if (match === null) throw new Error(`Not a version of codex: "${version}"`)
  return [Number(match[1]), Number(match[2]), Number(match[3])]
}

/** Name of codex's npm package. */
const CODEX_PACKAGE = '@openai/codex'

/**
 * Returns the folder of the npm package with the launcher `file`; null for any other file, usually the native binary. A
 * launcher is a link to `bin/codex.js`, or a shim of npm or pnpm that starts it.
 */
async function packageOfLauncher(file: string): Promise<string | null> {
  const real = await realpath(file)
  if (basename(real) === 'codex.js') return dirname(dirname(real))
  const started = /[$%](?:basedir|dp0%|~dp0)[\\/]+([^"'\n]*codex[\\/]bin[\\/]codex\.js)/.exec(await headOf(real))?.[1]
  if (started === undefined) return null
  const launcher = join(dirname(real), started.replaceAll('\\', '/'))
  return dirname(dirname(await realpath(launcher).catch(() => launcher)))
}

/**
 * Returns the native binary of codex's npm package in `directory`, which is in a separate package per platform; null if that
 * is not installed.
 */
async function nativeBinary(directory: string, platform: NodeJS.Platform, arch: string): Promise<string | null> {
  const triple = TRIPLES[`${platform}-${arch}`]
  if (triple === undefined) return null
  const root = platformPackageOf(directory, triple.name)
  if (root === null) return null
  const file = join(root, 'vendor', triple.target, 'bin', platform === 'win32' ? 'codex.exe' : 'codex')
  return (await isFile(file)) ? file : null
}

/** True if `path` is a file or a link to one. */
export async function isFile(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null)
  return found?.isFile() ?? false
}

const LINUX_X64 = { name: 'linux-x64', target: 'x86_64-unknown-linux-musl' }
const LINUX_ARM64 = { name: 'linux-arm64', target: 'aarch64-unknown-linux-musl' }

/** Platforms of codex by Node's names, as in the launcher of `@openai/codex` 0.169.0. */
const TRIPLES: Readonly<Record<string, { name: string; target: string }>> = {
  'linux-x64': LINUX_X64,
  'linux-arm64': LINUX_ARM64,
  'android-x64': LINUX_X64,
  'android-arm64': LINUX_ARM64,
  'darwin-x64': { name: 'darwin-x64', target: 'x86_64-apple-darwin' },
  'darwin-arm64': { name: 'darwin-arm64', target: 'aarch64-apple-darwin' },
  'win32-x64': { name: 'win32-x64', target: 'x86_64-pc-windows-msvc' },
  'win32-arm64': { name: 'win32-arm64', target: 'aarch64-pc-windows-msvc' },
}

/** Returns the package by Node's own rules, which cover npm and pnpm: beside codex's, inside it, or behind a link. */
function platformPackageOf(directory: string, name: string): string | null {
  try {
    return dirname(createRequire(join(directory, 'package.json')).resolve(`${CODEX_PACKAGE}-${name}/package.json`))
  } catch {
    return null
  }
}

/** Returns the first 8 KiB of a file as text, empty if unreadable: shims are shorter, and binaries are not read whole. */
async function headOf(file: string): Promise<string> {
  const handle = await open(file).catch(() => null)
  if (handle === null) return ''
  await using opened = handle
  const { buffer, bytesRead } = await opened.read(Buffer.alloc(8192), 0, 8192, 0)
  return buffer.toString('latin1', 0, bytesRead)
}

/** The directory of codex's login, configuration and threads. */
export interface CodexHome {
  /** Absolute path. */
  path: string
  /** `codemachine`: for codemachine's own login only. `person`: the person's, used unchanged. */
  owner: 'person' | 'codemachine'
  /** Environment that selects it. */
  env: NodeJS.ProcessEnv
}

export interface CodexHomeChoice {
  /** `auto`: codemachine's if it has a login, otherwise the person's. */
  setting: 'auto' | 'own' | 'codemachine'
  env: Readonly<NodeJS.ProcessEnv>
  /** The person's home directory. */
  home: string
  /** Root of codemachine's records. */
  codemachineHome: string
  /** Base of a relative `CODEX_HOME`. Default: the process's directory. */
  directory?: string
}

/** Chooses codex's home, without changing it. Throws a `UserError` if it is missing. */
export async function chooseCodexHome(choice: CodexHomeChoice): Promise<CodexHome> {
  const { setting, env, codemachineHome } = choice
  const own = join(codemachineHome, 'codex')
  if (setting === 'own') return personsHome(choice)
  if (setting === 'auto' && !(await isFile(join(own, 'auth.json')))) return personsHome(choice)
  if (!(await isFolder(own))) {
    throw new UserError(
      'CM0302',
      `The setting codex_home is "codemachine", but ${own} does not exist; log in, or set it to "auto".`,
      { hint: 'Log in: codemachine login', exitCode: 4 },
    )
  }
  return { path: own, owner: 'codemachine', env: { ...env, CODEX_HOME: own } }
}

async function personsHome({ env, home, directory }: CodexHomeChoice): Promise<CodexHome> {
  const { CODEX_HOME: named, ...rest } = env
  // Codex creates a missing ~/.codex only without CODEX_HOME; an empty CODEX_HOME counts as unset.
  if (!named) return { path: join(home, '.codex'), owner: 'person', env: rest }
  const path = resolve(directory ?? '', named)
  if (await isFolder(path)) return { path, owner: 'person', env: { ...env, CODEX_HOME: path } }
  throw new UserError('CM0305', `CODEX_HOME is ${path}, which is not a directory; create it, or unset CODEX_HOME.`)
}
