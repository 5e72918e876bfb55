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
  /** What is started: the native binary, or the launcher where there is no native binary beside it. Absolute. */
  path: string
  /** `0.169.0`. */
  version: string
  source: 'flag' | 'CODEX_BIN' | 'PATH' | 'node_modules'
  /** npm's launcher script, through which the binary was found; null if it was found directly. */
  launcher: string | null
  /** What a person should know of how it was found, a sentence each. */
  remarks: readonly string[]
}

export interface CodexSearch {
  /** The value of `--codex-bin`, or what the person's own settings name. */
  flag: string | null
  env: Readonly<NodeJS.ProcessEnv>
  /** What relative paths are relative to. Default: where the process runs. */
  directory?: string
  platform: NodeJS.Platform
  arch: string
  /** codemachine's own package, whose node_modules come last. */
  packageRoot: string
  /** Where agents can write: a codex in there that nobody named is passed over, for it runs outside of the sandbox. */
  where: WritableByAgents
  /** Folder of the records with the copies of those that lie in the work directory, and whether one that is missing is made. */
  copies: { folder: string; makes: boolean }
  /** File of the records in which it is remembered what `codex --version` said; left out: it is asked each time. */
  remembered?: string
}

/**
 * Finds codex: `--codex-bin`, `CODEX_BIN`, PATH, then the copy in node_modules; the first that is there is used. On PATH
 * those that an agent can have written are passed over, and in node_modules one in the work directory. One in the work
 * directory that is named is copied into the records, and the copy is used from then on. Throws a `UserError` if it is
 * unusable. Runs `codex --version` (15 ms), unless it is remembered of this very file.
 */
export async function findCodex(search: CodexSearch): Promise<CodexBinary> {
  const { source, file, passedOver } = await locate(search)
  const isNamed = source === 'flag' || source === 'CODEX_BIN'
  const found = await programOf(file, search)
  const isInReach = isInWork(file, search) || isInWork(found.path, search)
  const copy = isNamed && isInReach ? await copiedCodex({ ...found, named: file, ...search.copies }) : null
  const path = copy?.path ?? found.path
  const version = await versionOf(path, NAMED_BY[source], search)
  const others = await othersThan(found.path, passedOver, search)
  const remarks = copy?.remark ? [copy.remark] : []
  if (others.length > 0) remarks.push(`${passedOverInWords(others)} The codex in use is ${path}.`)
  return { path, version, source, launcher: found.launcher, remarks }
}

type Source = CodexBinary['source']

const NAMED_BY: Record<Source, string> = {
  flag: '--codex-bin names',
  CODEX_BIN: 'CODEX_BIN names',
  PATH: 'PATH leads to',
  node_modules: 'node_modules holds',
}

const INSTALL = 'Install codex with `npm install --global @openai/codex`, or name one with --codex-bin.'

/** A file that may be codex, or its launcher, and those before it that an agent may have written. */
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
    'No codex was found: there is no --codex-bin, no CODEX_BIN, no codex on PATH and none in node_modules.',
    { hint: passedOver.length === 0 ? INSTALL : `${passedOverInWords(passedOver)} ${INSTALL}` },
  )
}

function passedOverInWords(files: readonly string[]): string {
  return `codemachine does not use a codex that an agent can write: ${files.join(', ')}.`
}

/** Whether an agent can have written it in a round, and not only somebody who may write in the temporary directory. */
function isInWork(path: string, { where }: CodexSearch): boolean {
  return liesIn(path, [...where.workDirectory, ...where.gitDirectories, ...where.elsewhere])
}

/** Those that do not lead to the same program: a checkout's own node_modules may be on PATH, and be used, too. */
async function othersThan(path: string, files: readonly string[], search: CodexSearch): Promise<string[]> {
  const programs = await Promise.all(files.map(async file => ({ file, leadsTo: (await programOf(file, search)).path })))
  return programs.filter(({ leadsTo }) => leadsTo !== path).map(({ file }) => file)
}

/** What a person named: a path, or, without a slash, a command that PATH leads to. */
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

/** The program that a file stands for; `root`: the folder that all of it lies in, null if it is that file alone. */
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

/** More than any start of codex takes, even on a machine that is busy, ms. */
const VERSION_MS = 10_000

/** What `codex --version` says; throws a `UserError` if it is not a codex that codemachine supports. */
async function versionOf(path: string, namedBy: string, search: CodexSearch): Promise<string> {
  const { remembered, copies } = search
  const program = await realpath(path).catch(() => path)
  // By its looks before it is asked: what is put in its place meanwhile has others.
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

/** The version of a program that is still the file which was asked for it; null where that is not known. */
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

/** Where that fails it is asked again the next time. */
async function remember(file: string, known: Remembered): Promise<void> {
  await succeeds(writeWholeFile(file, JSON.stringify(known)))
}

/** Codex has more than twice that; a program that only picks another one to start, such as a version manager's shim, has less. */
const LEAST_BYTES = 100 * 1024 * 1024

/** Whether it is codex itself: a script, or a program that picks another one, may start a newer one tomorrow. */
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
    // Codex lays its aliases down in its home at every start; below a file there is none, and this start leaves no trace.
    // A launcher looks for node on the PATH.
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

/** The oldest supported codex: the first whose permission profiles deny reading. */
export const OLDEST_CODEX = '0.157.0'

/** The newest measured codex, whose protocol `protocol/codex.ts` is. */
export const NEWEST_MEASURED_CODEX = CODEX_VERSION

/** Parses the output of `codex --version` (`codex-cli 0.170.0-alpha.1`); null if it is not codex's. */
function parseVersionOutput(output: string): string | null {
  return /^codex(?:-cli)? (\d+\.\d+\.\d+(?:[-+][\w.+-]+)?)\s*$/m.exec(output)?.[1] ?? null
}

/** True if codex `version` is older than `other`. A prerelease counts as its release. */
export function isOlderCodex(version: string, other: string): boolean {
  const [major, minor, patch] = numbersOf(version)
  const [otherMajor, otherMinor, otherPatch] = numbersOf(other)
  // Whoever builds codex from its sources gets 0.0.0, which is the newest there is.
  if (major + minor + patch === 0) return false
  return (major - otherMajor || minor - otherMinor || patch - otherPatch) < 0
}

function numbersOf(version: string): [number, number, number] {
  const match = /^(\d+)\.(\d+)\.(\d+)/.exec(version)
  if (match === null) throw new Error(`Not a version of codex: "${version}"`)
  return [Number(match[1]), Number(match[2]), Number(match[3])]
}

/** The name under which codex's npm package is installed. */
const CODEX_PACKAGE = '@openai/codex'

/**
 * The folder of the npm package whose launcher `file` is (a link to `bin/codex.js`, or npm's and pnpm's shims, which
 * start it by a script); null if it is something else, as a rule the native binary.
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
 * The native binary of codex's npm package in `directory`, which lies in a package of its own for each platform; null if
 * that is not installed.
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

/** The platforms that codex is built for, by Node's names, as in the launcher of `@openai/codex` 0.169.0. */
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

/** Node's own rules find the package where npm and pnpm put it: beside codex's, inside it, or behind a link. */
function platformPackageOf(directory: string, name: string): string | null {
  try {
    return dirname(createRequire(join(directory, 'package.json')).resolve(`${CODEX_PACKAGE}-${name}/package.json`))
  } catch {
    return null
  }
}

/** The first 8 KiB of a file as text, empty if it cannot be read: the shims are shorter, and a binary is not read whole. */
async function headOf(file: string): Promise<string> {
  const handle = await open(file).catch(() => null)
  if (handle === null) return ''
  await using opened = handle
  const { buffer, bytesRead } = await opened.read(Buffer.alloc(8192), 0, 8192, 0)
  return buffer.toString('latin1', 0, bytesRead)
}

/** The directory in which codex keeps its login, its configuration and its threads. */
export interface CodexHome {
  /** Absolute. */
  path: string
  /** `codemachine`: made for a login of codemachine alone. `person`: the person's own, used unchanged. */
  owner: 'person' | 'codemachine'
  /** The environment that makes codex use it. */
  env: NodeJS.ProcessEnv
}

export interface CodexHomeChoice {
  /** `auto`: codemachine's if there is a login in it, else the person's. */
  setting: 'auto' | 'own' | 'codemachine'
  env: Readonly<NodeJS.ProcessEnv>
  /** The person's home directory. */
  home: string
  /** Where codemachine keeps its records. */
  codemachineHome: string
  /** What a relative `CODEX_HOME` is relative to. Default: where the process runs. */
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
  // Codex makes a missing ~/.codex by itself, but only where CODEX_HOME is not set; an empty one counts as not set.
  if (!named) return { path: join(home, '.codex'), owner: 'person', env: rest }
  const path = resolve(directory ?? '', named)
  if (await isFolder(path)) return { path, owner: 'person', env: { ...env, CODEX_HOME: path } }
  throw new UserError('CM0305', `CODEX_HOME is ${path}, which is not a directory; create it, or unset CODEX_HOME.`)
}
