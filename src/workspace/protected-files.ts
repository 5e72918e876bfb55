import { createHash } from 'node:crypto'
import { baseOf, compileGlob } from '../base/glob.ts'
import {
  isGateConfiguration,
  isLockFile,
  isPythonLockFile,
  isTestByName,
  isTestRunnerConfig,
} from '../core/rules/proof/gate-files.ts'
import { comparable } from '../platform/files.ts'
import { fromLatin1, GitError, pathArguments, runGit, runGitOrThrow } from './git/git.ts'
import { type PrivateGit, withoutIndex } from './git/private-git.ts'
import { addedLines, type ChangedFile, changedFiles, treeFiles } from './git/trees.ts'
import { type ChangedProgram, changedPrograms } from './programs.ts'

/** A set of protecting globs, compiled. Names are compared composed (NFC), and as the platform's file systems do. */
export interface ProtectedGlobs {
  /** Returns true for a protected path, relative to the work directory. */
  covers(path: string): boolean
  /** Returns true if a glob is the plain name of this path. */
  isNamed(path: string): boolean
  /** Folders or names that contain every protected path; '' is the work directory. */
  bases: readonly string[]
}

/** Compiles globs relative to the work directory. A plain name protects a file, or a folder with everything in it. */
export function protectedGlobs(globs: readonly string[], platform?: NodeJS.Platform): ProtectedGlobs {
  const composed = globs.map(glob => glob.normalize())
  const keyOf = (path: string) => comparable(path.normalize(), platform)
  // As written, too: in lower case, a set such as `[A-z]` matches less.
  const matchers = [...new Set([...composed, ...composed.map(keyOf)])].map(matcherOf)
  const names = new Set(composed.filter(isPlain).map(keyOf))
  const bases = new Set(composed.map(glob => (isPlain(glob) ? glob : baseOf(glob))))
  return {
    covers: path => {
      const forms = new Set([path.normalize(), keyOf(path)])
      return matchers.some(matches => [...forms].some(matches))
    },
    isNamed: path => names.has(keyOf(path)),
    bases: [...bases].filter(base => ![...bases].some(other => other !== base && isBelow(base, other))),
  }
}

/** True if a glob may match more than test files, such as a plain name or a test runner's configuration. */
export function coversMoreThanTests(glob: string): boolean {
  return isPlain(glob) || !/\*[._-](?:test|spec)s?\.(?:\w+|\{[\w,]+\})$/.test(glob)
}

/** True if a path is below a folder; every path is below ''. */
export function isBelow(path: string, folder: string): boolean {
  return folder === '' || path.startsWith(`${folder}/`)
}

function matcherOf(glob: string): (path: string) => boolean {
  // A glob without a wildcard in its last part may name a folder.
  const endsInName = isPlain(glob.slice(glob.lastIndexOf('/') + 1))
  const { matches } = compileGlob(endsInName ? `${glob}/**` : glob, TOO_HARD)
  // A file name may contain characters that are special in a glob.
  return path => path === glob || path.startsWith(`${glob}/`) || matches(path)
}

function isPlain(glob: string): boolean {
  return compileGlob(glob, TOO_HARD).isPlain
}

/** Result for a too slow match: count the file as protected. */
const TOO_HARD = { tooHard: true }

/** A gate and its protected globs, for `protectedGlobs`. */
export interface ProtectingGate {
  name: string
  protect: readonly string[]
}

/** A protected file and its change. `skipped`: its tests were marked as skipped. */
interface ProtectedFile {
  path: string
  how: 'changed' | 'deleted' | 'skipped'
  /** Names of the gates that protect it. */
  gates: readonly string[]
}

/** The changed protected files: the first 50 in git's order, and the number of all. */
interface ProtectedChanges {
  files: readonly ProtectedFile[]
  count: number
}

interface ProtectedChangesOptions {
  gates: readonly ProtectingGate[]
  /** Trees in the private git directory. */
  before: string
  after: string
  git: PrivateGit
  /** Left out: this machine's. */
  platform?: NodeJS.Platform
}

/**
 * Finds protected files that differ between two trees. Ignores a new file, which cannot weaken a gate. Exceptions: it skips
 * tests, configures a test runner, or a gate names it. If the older tree is missing, every protected file counts as changed.
 */
export async function protectedChanges(options: ProtectedChangesOptions): Promise<ProtectedChanges> {
  const { gates, before, after, git, platform } = options
  const protecting = gates.filter(({ protect }) => protect.length > 0)
  if (protecting.length === 0 || before === after) return { files: [], count: 0 }
  const named = protecting.map(({ name, protect }) => ({ name, ...protectedGlobs(protect, platform) }))
  const { changes, isKnown } = await readChanges(git, before, after)
  const touched = changes.flatMap(file => {
    const by = named.filter(({ covers }) => covers(file.path))
    return by.length === 0 ? [] : [{ file, by, isNamed: by.some(({ isNamed }) => isNamed(file.path)) }]
  })
  const looked = touched.map(({ file }) => file).filter(({ how, path }) => how !== 'deleted' && canMarkSkipped(path))
  const lines = isKnown ? await addedLines(git, looked) : new Map<string, string[]>()
  const files = touched.flatMap(({ file, by, isNamed }): ProtectedFile[] => {
    const isSkipping = marksTestsSkipped(file.path, lines.get(file.path) ?? [])
    const counts = file.how !== 'added' || isSkipping || isNamed || !isKnown || isTestRunnerConfig(file.path)
    if (!counts) return []
    const how = file.how === 'deleted' ? 'deleted' : isSkipping ? 'skipped' : 'changed'
    return [{ path: file.path, how, gates: by.map(({ name }) => name) }]
  })
  return { files: files.slice(0, MOST_FILES), count: files.length }
}

/** A file that gates run through, and its change; for packages the folder. */
interface ConfigurationFile {
  path: string
  how: 'added' | 'changed' | 'deleted'
}

/** Changed configuration of gates: the first 50 in git's order, and the number of all. */
interface GateConfiguration {
  files: readonly ConfigurationFile[]
  count: number
  /** Identifies this very content; null: no change. */
  digest: string | null
}

interface GateConfigurationOptions extends ProtectedChangesOptions {
  /** Earlier text of a `programReader`, null if unknown, and the current one. */
  programs: { before: string | null; after: string }
}

/**
 * Finds changed configuration of gates between two trees, and new protected files without a test's name; without the results
 * of `protectedChanges`. Of programs, changes without a changed lock file count (`differingPrograms`). Without protected
 * files, only programs count; without the older tree, nothing.
 */
export async function gateConfiguration(options: GateConfigurationOptions): Promise<GateConfiguration> {
  const { gates, before, after, git, programs, platform } = options
  const named = gates
    .filter(({ protect }) => protect.length > 0)
    .map(({ protect }) => protectedGlobs(protect, platform))
  const changes = await changedFiles(git, before, after)
  if (changes === null) return NO_CONFIGURATION
  const locks = await changedLocks(options, changes)
  const isInstalled = (path: string) => isExplained(path, locks)
  const differing = changes.flatMap(({ path, how, after: hash }) => {
    const name = path.normalize()
    const isProtected = named.some(({ covers }) => covers(name))
    // These are reported as protected files.
    const isTold =
      isProtected && (how !== 'added' || isTestRunnerConfig(name) || named.some(({ isNamed }) => isNamed(name)))
    if (IN_PROGRAMS.test(name) && isInstalled(name)) return []
    const counts =
      (named.length > 0 && isGateConfiguration(name)) || (isProtected && how === 'added' && !isTestByName(name))
    return isTold || !counts ? [] : [{ path, how, hash }]
  })
  differing.push(...differingPrograms(programs, isInstalled).map(({ path, how, hash }) => ({ path, how, hash })))
  if (differing.length === 0) return NO_CONFIGURATION
  // A link's target is not read, so any other tree counts as other content.
  const isUnread = differing.some(({ how, hash }) => how !== 'deleted' && hash === null)
  return {
    files: differing.slice(0, MOST_FILES).map(({ path, how }) => ({ path, how })),
    count: differing.length,
    digest: createHash('sha256')
      .update(JSON.stringify([differing, isUnread ? after : null]))
      .digest('hex'),
  }
}

const NO_CONFIGURATION: GateConfiguration = { files: [], count: 0, digest: null }

const IN_PROGRAMS = /(?:^|\/)node_modules\/\.bin\/[^/]+$/

/** Returns the changed lock files with more than white space changes. If a tree is unreadable, all of them. */
async function changedLocks(
  { before, after, git }: ProtectedChangesOptions,
  changes: readonly ChangedFile[],
): Promise<string[]> {
  const locks = changes.map(({ path }) => path).filter(path => isLockFile(path) || isPythonLockFile(path))
  if (locks.length === 0) return []
  const counted = [
    'diff-tree',
    '-r',
    '-z',
    '-w',
    '--ignore-blank-lines',
    '--numstat',
    '--no-renames',
    '--end-of-options',
  ]
  const { ok, stdout } = await runGit(withoutIndex(git), [...counted, before, after])
  if (!ok) return locks
  const differing = new Set(stdout.split('\0').map(entry => fromLatin1(entry.split('\t')[2] ?? '')))
  return locks.filter(path => differing.has(path))
}

/** True if an install with these changed lock files may have changed this path. */
function isExplained(path: string, locks: readonly string[]): boolean {
  const at = `/${path}`.lastIndexOf('/node_modules/')
  if (at === -1) return locks.some(isPythonLockFile)
  const folder = path.slice(0, at)
  return locks.some(lock => isLockFile(lock) && folder.startsWith(lock.slice(0, lock.lastIndexOf('/') + 1)))
}

/**
 * Returns the changed programs that no changed lock file explains. A lock file explains new, removed and updated packages,
 * but not new content of the same version.
 */
function differingPrograms(
  { before, after }: GateConfigurationOptions['programs'],
  isInstalled: (path: string) => boolean,
): ChangedProgram[] {
  if (before === null || before === after) return []
  const isOtherContent = ({ path, isOtherVersion }: ChangedProgram) => IN_PACKAGES.test(path) && !isOtherVersion
  return changedPrograms(before, after).filter(changed => !isInstalled(changed.path) || isOtherContent(changed))
}

const IN_PACKAGES = /(?:^|\/)node_modules\/(?!\.bin(?:\/|$))/

async function readChanges(
  git: PrivateGit,
  before: string,
  after: string,
): Promise<{ changes: ChangedFile[]; isKnown: boolean }> {
  const changes = await changedFiles(git, before, after)
  if (changes !== null) return { changes, isKnown: true }
  const all = await treeFiles(git, after)
  if (all === null) throw new GitError(['ls-tree', after], { ok: false, stdout: '', stderr: `${after} is gone` })
  return { changes: all, isKnown: false }
}

const MOST_FILES = 50

/**
 * True if lines of a test file skip tests or run single ones only. Knows the markers of each language. Works on latin1 text.
 */
export function marksTestsSkipped(path: string, lines: readonly string[]): boolean {
  const pattern = skipPatternFor(path)
  return pattern !== null && lines.some(line => pattern.test(line.slice(0, LONGEST_LINE)))
}

/** True if the markers of this file's language are known. */
function canMarkSkipped(path: string): boolean {
  return skipPatternFor(path) !== null
}

function skipPatternFor(path: string): RegExp | null {
  const ending = /\.([^./]+)$/.exec(path)?.[1]?.toLowerCase()
  if (ending === undefined) return null
  return SKIP_PATTERNS.find(({ endings }) => endings.includes(ending))?.pattern ?? null
}

const LONGEST_LINE = 2000

const SKIP_PATTERNS: readonly { endings: readonly string[]; pattern: RegExp }[] = [
  {
    endings: ['js', 'jsx', 'ts', 'tsx', 'mjs', 'cjs', 'mts', 'cts', 'vue', 'svelte', 'coffee'],
    pattern:
      /\.(?:skip|only|todo|skipIf|runIf|fixme|failing)\b\s*[(.`<]|\b[xf](?:it|test|describe|context|specify)\s*[(.`]|\bpending\s*\(|\b(?:skip|only|todo)\s*:\s*(?:true|['"`])/,
  },
  {
    endings: ['py'],
    pattern:
      /\bmark\.(?:skip|skipif|xfail)\b|\bpytest\.(?:skip|xfail|importorskip)\b|@(?:unittest\.)?(?:skip|skipIf|skipUnless|expectedFailure)\b|\bskipTest\s*\(|\bSkipTest\b|\b__test__\s*=\s*False|\bcollect_ignore/,
  },
  { endings: ['rs'], pattern: /#!?\[\s*(?:ignore\b|cfg_attr\s*\(.*\bignore\b|cfg\s*\(\s*(?:any\s*\(\s*\)|FALSE))/ },
  {
    endings: ['go'],
    pattern:
      /\b[tbf]\.Skip(?:f|Now)?\s*\(|^\/\/(?:go:build|\s*\+build)\s+ignore\b|\b[FP](?:It|Describe|Context|Specify)\s*\(/,
  },
  {
    endings: ['java', 'kt', 'kts', 'groovy', 'scala'],
    pattern:
      /@(?:Disabled\w*|Ignore\w*|EnabledIf\w*|EnabledOn\w*|PendingFeature)\b|\bassum(?:e|ing)\w*\s*\(|\benabled\s*=\s*false|\bignore\s*\(\s*"|\bin\s+pending\b/,
  },
  {
    endings: ['cs', 'fs', 'vb'],
    pattern: /\bSkip\s*=\s*"|\[\s*(?:Ignore|Explicit)\b|\bAssert\.(?:Ignore|Inconclusive|Skip\w*)\s*\(/,
  },
  {
    endings: ['rb'],
    pattern:
      /\b[xf](?:it|describe|context|specify|example|scenario)\b|^\s*(?:skip|pending)\b|\b(?:skip|pending|focus)\s*(?::|=>)|:(?:skip|pending|focus)\b/,
  },
  { endings: ['php'], pattern: /\bmarkTest(?:Skipped|Incomplete)\b|->\s*(?:skip|only|todo)\s*\(|#\[\s*Requires/ },
  { endings: ['swift'], pattern: /\bXCTSkip|\.disabled\s*\(|\.enabled\s*\(\s*if:/ },
  { endings: ['ex', 'exs'], pattern: /@(?:module)?tag\s+:?skip\b/ },
  {
    endings: ['c', 'cc', 'cpp', 'cxx', 'h', 'hh', 'hpp', 'm', 'mm'],
    pattern: /\bGTEST_SKIP\b|\bDISABLED_\w|\bTEST_IGNORE|\[!(?:mayfail|shouldfail)\]|\bXCTSkip/,
  },
  { endings: ['dart'], pattern: /\bskip\s*:|@Skip\b/ },
  { endings: ['bats', 'sh', 'bash', 'zsh'], pattern: /^\s*skip\b/ },
  { endings: ['pl', 't', 'pm'], pattern: /\bskip_all\b|\bskip\s*[('"]|\bTODO\s*:/ },
  { endings: ['r'], pattern: /\bskip(?:_\w+)?\s*\(/ },
  { endings: ['jl'], pattern: /@test_(?:skip|broken)\b|\bskip\s*=\s*true/ },
  { endings: ['lua'], pattern: /\bpending\s*\(/ },
  { endings: ['hs'], pattern: /\bx(?:it|describe|specify)\b|\bpending(?:With)?\b/ },
  { endings: ['feature'], pattern: /^\s*@(?:skip|ignore|wip|pending|todo)\b/i },
]

/** The protecting globs that match no file. Ignored files count only where a glob names them. */
export async function unmatchedGlobs(git: PrivateGit, globs: readonly string[]): Promise<ReadonlySet<string>> {
  if (globs.length === 0) return new Set()
  const left = new Map([...new Set(globs)].map(glob => [glob, protectedGlobs([glob])]))
  const { prefix } = git
  for (const entry of await filesBelow(git, protectedGlobs(globs).bases)) {
    const path = fromLatin1(entry).slice(prefix.length).normalize()
    for (const [glob, one] of left) if (mayMatch(one, path)) left.delete(glob)
    if (left.size === 0) break
  }
  return new Set(left.keys())
}

/** A nested repository is listed as a folder without its files, so it may hold any of them. */
function mayMatch({ covers, bases }: ProtectedGlobs, path: string): boolean {
  if (!path.endsWith('/')) return covers(path)
  const folder = path.slice(0, -1)
  return bases.some(base => base === folder || isBelow(base, folder) || isBelow(folder, base))
}

/** A path that no file has. */
const NO_PATH = '\u0001'

async function filesBelow({ setting, prefix }: PrivateGit, bases: readonly string[]): Promise<string[]> {
  const folders = bases.map(base => `${prefix}${base}`.replace(/\/$/, '')).filter(base => base !== '')
  const within = folders.length < bases.length ? [] : ['--', ...pathArguments(folders)]
  const listed: string[] = []
  for (const which of [
    ['-c', '-o', '--exclude-standard', ...within],
    // Git fails on a single path in an ignored folder.
    ['-o', '-i', '--exclude-standard', '--directory', ...within, ...(within.length === 0 ? [] : [NO_PATH])],
  ]) {
    const output = await runGitOrThrow(setting, ['ls-files', '-z', ...which])
    listed.push(...output.split('\0').slice(0, -1))
  }
  return listed
}
