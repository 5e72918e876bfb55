import { access, constants } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { UserError } from '../base/errors.ts'
import { type ProcessResult, runProcess } from '../platform/run-process.ts'
import { isOlderCodex, OLDEST_CODEX, parseVersionOutput } from './codex-version.ts'
import { CODEX_PACKAGE, isFile, nativeBinary, packageOfLauncher } from './native-codex.ts'

/** The codex that runs the rounds. */
export interface CodexBinary {
  /** What is started: the native binary, or the launcher where there is no native binary beside it. Absolute. */
  path: string
  /** `0.169.0`. */
  version: string
  source: 'flag' | 'CODEX_BIN' | 'PATH' | 'node_modules'
  /** npm's launcher script, if that is what was found. */
  launcher: string | null
}

export interface CodexSearch {
  /** The value of `--codex-bin`. */
  flag: string | null
  env: Readonly<NodeJS.ProcessEnv>
  /** What relative paths are relative to. Default: where the process runs. */
  directory?: string
  platform: NodeJS.Platform
  arch: string
  /** codemachine's own package, whose node_modules come last. */
  packageRoot: string
}

/**
 * Finds codex: `--codex-bin`, `CODEX_BIN`, PATH, then the copy in node_modules; the first one that is named counts, and
 * a UserError says what is wrong with it. Runs `codex --version` (5 ms).
 */
export async function findCodex(search: CodexSearch): Promise<CodexBinary> {
  const { source, file } = await locate(search)
  const directory = await packageOfLauncher(file)
  const native = directory === null ? null : await nativeBinary(directory, search.platform, search.arch)
  const path = native ?? file
  const version = await versionOf(path, NAMED_BY[source], search.env)
  return { path, version, source, launcher: directory === null ? null : file }
}

type Source = CodexBinary['source']

const NAMED_BY: Record<Source, string> = {
  flag: '--codex-bin names',
  CODEX_BIN: 'CODEX_BIN names',
  PATH: 'PATH leads to',
  node_modules: 'node_modules holds',
}

const INSTALL = 'Install codex with `npm install --global @openai/codex`, or name one with --codex-bin.'

async function locate(search: CodexSearch): Promise<{ source: Source; file: string }> {
  if (search.flag !== null) return { source: 'flag', file: await namedFile(search.flag, 'flag', search) }
  if (search.env.CODEX_BIN)
    return { source: 'CODEX_BIN', file: await namedFile(search.env.CODEX_BIN, 'CODEX_BIN', search) }
  const onPath = await fileOnPath('codex', search)
  if (onPath !== null) return { source: 'PATH', file: onPath }
  const installed = launcherInNodeModules(search.packageRoot)
  if (installed !== null) return { source: 'node_modules', file: installed }
  throw new UserError(
    'No codex was found: there is no --codex-bin, no CODEX_BIN, no codex on PATH and none in node_modules.',
    { hint: INSTALL },
  )
}

/** What a person named: a path, or, without a slash, also a command that PATH leads to. */
async function namedFile(name: string, source: 'flag' | 'CODEX_BIN', search: CodexSearch): Promise<string> {
  const path = resolve(search.directory ?? '', name)
  if (await isFile(path)) return path
  const onPath = /[\\/]/.test(name) ? null : await fileOnPath(name, search)
  if (onPath !== null) return onPath
  const place = source === 'flag' ? '--codex-bin' : 'CODEX_BIN'
  throw new UserError(`${NAMED_BY[source]} ${path}, and there is no such file; correct ${place} or leave it out.`)
}

async function fileOnPath(name: string, { env, platform, directory }: CodexSearch): Promise<string | null> {
  const windows = platform === 'win32'
  const names = windows && !/\.\w+$/.test(name) ? [`${name}.exe`, `${name}.cmd`] : [name]
  // Windows also spells it "Path".
  const variable = windows ? Object.keys(env).find(key => key.toUpperCase() === 'PATH') : 'PATH'
  const folders = (env[variable ?? 'PATH'] ?? '').split(windows ? ';' : ':').filter(folder => folder !== '')
  for (const file of folders.flatMap(folder => names.map(each => resolve(directory ?? '', folder, each)))) {
    if ((await isFile(file)) && (windows || (await isExecutable(file)))) return file
  }
  return null
}

function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  )
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

/** Asks codex which version it is; throws a UserError if it is none that codemachine works with. */
async function versionOf(path: string, namedBy: string, env: Readonly<NodeJS.ProcessEnv>): Promise<string> {
  const result = await runProcess(path, ['--version'], {
    // Codex lays its aliases down in its home at every start; below a file there is none, and this start leaves no trace.
    env: { ...env, CODEX_HOME: join(path, 'none') },
    encoding: 'utf8',
    timeoutMs: VERSION_MS,
    outputLimit: 65_536,
  })
  const fault = (what: string, hint: string) => new UserError(`${namedBy} ${path}, which ${what}.`, { hint })
  if (result.failure === 'timeout') throw fault(`did not answer \`--version\` within ${VERSION_MS / 1000} s`, INSTALL)
  if (result.failure === 'EACCES')
    throw fault('is not executable', 'Make it so with `chmod +x`, or name another codex with --codex-bin.')
  const version = parseVersionOutput(result.stdout)
  if (version === null) throw fault(`is not codex: \`--version\` ${answerOf(result)}`, INSTALL)
  if (isOlderCodex(version, OLDEST_CODEX)) {
    throw fault(
      `is codex ${version}, and codemachine needs ${OLDEST_CODEX} or newer`,
      'Update it with `npm install --global @openai/codex@latest`, or name another one with --codex-bin.',
    )
  }
  return version
}

function answerOf({ exitCode, stdout, stderr, failure }: ProcessResult): string {
  const line = `${stdout}\n${stderr}`.trim().split('\n')[0]?.slice(0, 120)
  if (line) return `answered "${line}"`
  return exitCode === null ? `could not be run (${failure})` : 'answered nothing'
}
