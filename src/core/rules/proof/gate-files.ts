// Finds the files that a gate uses by their names. Paths are relative to the work directory, with `/`.

/** Returns true if a file of this name configures a test runner, in any folder. */
export function isTestRunnerConfig(path: string): boolean {
  return RUNNER_CONFIG.test(nameOf(path))
}

/** File names of test runner configuration. */
const RUNNER_CONFIG =
  /^(?:conftest\.py|\.?pytest\.ini|tox\.ini|setup\.cfg|\.coveragerc|nose2?\.cfg|unittest\.cfg|(?:vitest|vite|jest|playwright|cypress|karma|wdio|ava|jasmine|mocha|web-test-runner|cucumber)[\w.-]*\.(?:config|workspace|setup|conf)\.\w+|\.mocharc(?:\.\w+)?|\.(?:nycrc|taprc|c8rc)(?:\.\w+)?|\.rspec|(?:spec|rails|test)_helper\.rb|phpunit(?:\.dist)?\.xml(?:\.dist)?|codeception\.ya?ml|junit-platform\.properties|testng\.xml|nextest\.toml|.+\.runsettings|xunit\.runner\.json|dart_test\.yaml|\.busted|test_helper\.exs)$/i

/**
 * Returns true if any gate may use this file: settings of package managers, test runners, interpreters and git attributes,
 * makefiles, and `node_modules/.bin`.
 */
export function isGateConfiguration(path: string): boolean {
  return isTestRunnerConfig(path) || RUN_THROUGH.test(nameOf(path)) || RUN_THROUGH_BELOW.test(path)
}

const RUN_THROUGH =
  /^(?:\.npmrc|\.yarnrc(?:\.yml)?|\.pnpmfile\.[cm]?js|pnpm-workspace\.yaml|bunfig\.toml|(?:site|user)customize\.py|.+\.pth|noxfile\.py|(?:gnu)?makefile|.+\.mk|\.?justfile|rakefile|taskfile\.ya?ml|rust-toolchain(?:\.toml)?|\.gitattributes|\.envrc|\.proverc)$/i
const RUN_THROUGH_BELOW =
  /(?:^|\/)(?:\.cargo\/config(?:\.toml)?|\.mvn\/[^/]+|\.bundle\/config|node_modules\/\.bin\/[^/]+)$/i

/** Top-level configuration that counts even if git ignores it: a file with tokens (`.npmrc`) is often ignored. */
export const TOP_CONFIGURATION: readonly string[] = [
  ...['.npmrc', '.yarnrc', '.yarnrc.yml', '.pnpmfile.cjs', '.pnpmfile.mjs', 'pnpm-workspace.yaml', 'bunfig.toml'],
  ...['GNUmakefile', 'makefile', 'Makefile', 'conftest.py', 'pytest.ini', 'sitecustomize.py', 'usercustomize.py'],
  ...['.cargo/config.toml', '.cargo/config', '.gitattributes', '.envrc'],
]

/**
 * Returns the globs to check, even if git ignores the files: protected files, and if any, `TOP_CONFIGURATION`.
 * @param addsGates true if later gates may protect files
 */
export function globsLookedAt(gates: readonly { protect: readonly string[] }[], addsGates = false): string[] {
  const globs = gates.flatMap(({ protect }) => protect)
  return globs.length === 0 && !addsGates ? [] : [...globs, ...TOP_CONFIGURATION]
}

/**
 * Returns true if a gate may use this file, judged by path and name, changed or new: a test, a fixture or snapshot, tool
 * settings, a manifest with scripts. Pure.
 */
export function isGateMatter(path: string): boolean {
  return (
    isGateConfiguration(path) ||
    isLockFile(path) ||
    isTestByName(path) ||
    TEST_FOLDER.test(path) ||
    TOOL_SETTINGS.test(nameOf(path))
  )
}

const TEST_FOLDER =
  /(?:^|\/)(?:tests?|specs?|e2e|testing|test[-_]?(?:data|utils?|helpers?)|fixtures?|__(?:tests|mocks|snapshots|fixtures)__)\//i
const TOOL_SETTINGS =
  /^(?:package\.json|deno\.jsonc?|pyproject\.toml|setup\.py|cargo\.toml|build\.rs|go\.(?:mod|work)|pom\.xml|(?:build|settings)\.gradle(?:\.kts)?|gradle\.properties|composer\.json|gemfile|mix\.exs|[jt]sconfig[\w.-]*\.json|.+\.config\.\w+|\.\w+rc(?:\.\w+)?|\.env(?:\.\w+)?)$/i

/**
 * Returns names that a gate's command resolves without a path: programs, targets of `make`, test runners of `-m`. A
 * top-level file or folder of that name may be used instead.
 * @param run a shell command line
 */
export function namesFoundBy(run: string): string[] {
  const names = commandsOf(run).flatMap(words => {
    const start = words.findIndex((word, at) => !isBeforeProgram(word, at))
    const [program = '', ...rest] = start === -1 ? [] : words.slice(start)
    const targets = MAKERS.has(nameOf(program)) ? rest.filter(word => !/^-|=/.test(word)) : []
    const [, module = ''] = /(?:^| )-m ([\w-]+)/.exec(rest.join(' ')) ?? []
    return [program, ...targets, RUNNER_MODULE.test(module) ? module : '']
  })
  return [...new Set(names.filter(name => /^[\w-]+$/.test(name)))]
}

const RUNNER_MODULE =
  /^(?:unittest|pytest|nose2?|doctest|tox|nox|coverage|trial|mypy|pyright|pylint|flake8|ruff|black)$/

/**
 * Returns the files that a gate's command executes by path: `./run-tests`, `bash scripts/test.sh`, `. ./env.sh`, `node
 * check.js`.
 * @param run a shell command line
 */
export function executedBy(run: string): string[] {
  const files = commandsOf(run).flatMap(words => {
    const start = words.findIndex((word, at) => !(isBeforeProgram(word, at) && !SHELLS.has(word)))
    const [program = '', ...rest] = start === -1 ? [] : words.slice(start)
    const first = rest.find(word => !word.startsWith('-'))
    return [program.includes('/') ? program : '', INTERPRETERS.test(nameOf(program)) ? (first ?? '') : '']
  })
  return [...new Set(files.map(path => path.replace(/^(?:\.\/+)+/, '')).filter(path => PLAIN_PATH.test(path)))]
}

/**
 * Returns the files that a script or makefile includes, as written: `. ./env.sh`, `source lib/check.sh`, `include
 * config.mk`. For `$(dirname "$0")/lib.sh`: the part after the variable.
 */
export function includedBy(text: string): string[] {
  const files = [...text.replace(HERE, '').matchAll(INCLUDES)].flatMap(([, list = '']) => list.trim().split(/\s+/))
  const plain = files.map(path =>
    path
      .replaceAll(/['"]/g, '')
      .replace(/^(?:\$\{[^}]*\}|\$\w+)\/+/, '')
      .replace(/^(?:\.\/+)+/, ''),
  )
  return [...new Set(plain.filter(path => PLAIN_PATH.test(path)))].slice(0, MOST_INCLUDED)
}

const INCLUDES = /(?:^|[;&|{(])[\t ]*(?:@?\.|source|-?include|sinclude)[\t ]+([^#;&|\n]{1,1000})/gm
/** Prefixes in the form of `$(dirname "$0")/`. */
const HERE = /\$\([^()\n]{0,200}\)\/+/g
const MOST_INCLUDED = 200

const SHELLS = new Set(['sh', 'bash', 'dash', 'zsh'])
const INTERPRETERS =
  /^(?:\.|source|sh|bash|dash|zsh|ksh|fish|pwsh|node|deno|bun|tsx|ts-node|python[\d.]*|ruby|perl|php|lua|Rscript)$/

/** Returns true for a lock file that an install writes. */
export function isLockFile(path: string): boolean {
  return /^(?:package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?)$/.test(nameOf(path))
}

/** Returns true for a lock or requirements file of Python packages. */
export function isPythonLockFile(path: string): boolean {
  return /^(?:(?:poetry|uv|pdm)\.lock|Pipfile\.lock|requirements[\w.-]*\.txt)$/.test(nameOf(path))
}

/** Returns true for a test's file name: `a.test.ts`, `test_a.py`, `ATest.java`, `a.bats`, or a snapshot of one. */
export function isTestByName(path: string): boolean {
  return TEST_NAME.test(nameOf(path))
}

const TEST_NAME =
  /^(?:tests?|spec)[._-]|[._-](?:tests?|spec|cy|e2e|it)[._-]|[A-Za-z\d](?:Tests?|Spec)\.|[a-z\d]IT\.|^Test[A-Z]|\.(?:bats|t|feature|snap)$/

/**
 * Returns the files that a gate's command runs by default: makefiles of `make` and similar tools, and configuration files
 * that it names.
 * @param run a shell command line
 */
export function ownFilesOf(run: string): string[] {
  let folder = ''
  const files: string[] = []
  for (const words of commandsOf(run)) {
    const [program, target = ''] = words
    // A `cd` on another line or in brackets is not undone.
    if (program === 'cd') folder = `${folder}${target.replace(/\/*$/, '/')}`
    else files.push(...filesOfCommand(words, folder))
  }
  return [...new Set(files)]
}

/** Returns the words of each command in a line, without quotes. */
function commandsOf(run: string): string[][] {
  return run.split(/&&|\|\||[;|&()\n]/).map(command => command.replaceAll(/['"]/g, '').trim().split(/\s+/))
}

/** @param directory where the command runs: empty, or ending in a slash */
function filesOfCommand(words: readonly string[], directory: string): string[] {
  const start = words.findIndex((word, at) => !isBeforeProgram(word, at))
  const [program = '', ...rest] = start === -1 ? [] : words.slice(start).flatMap(flagAndValue)
  const after = (...flags: string[]) => {
    const flag = rest.findIndex(word => flags.includes(word))
    return flag === -1 ? null : (rest[flag + 1] ?? '')
  }
  const target = after('-C', '--directory')
  const folder = target === null ? directory : `${directory}${target}/`
  const files = MAKERS.get(nameOf(program)) ?? []
  const own = [...files, ...[program, ...rest].filter(isGateConfiguration)]
  if (files.length > 0) own.push(after('-f', '--file', '--makefile') ?? '')
  return own.map(path => `${folder}${path}`.replace(/^(?:\.\/+)+/, '')).filter(path => PLAIN_PATH.test(path))
}

/** Splits `--file=ci.mk` into two words. */
function flagAndValue(word: string): string[] {
  const [, flag, value] = /^(--?\w[\w-]*)=(.*)$/.exec(word) ?? []
  return flag === undefined || value === undefined ? [word] : [flag, value]
}

/** Returns true for a word before the program: `CI=1 timeout 60 make`, `nice -n 10 make`, `bash -c "make"`. */
function isBeforeProgram(word: string, at: number): boolean {
  return /^\w+=/.test(word) || WRAPPERS.has(word) || (at > 0 && /^[\d-]/.test(word))
}

const WRAPPERS = new Set(['env', 'time', 'exec', 'nice', 'command', 'timeout', 'sh', 'bash', 'dash', 'zsh', '!'])

const MAKEFILES = ['GNUmakefile', 'makefile', 'Makefile']
const MAKERS: ReadonlyMap<string, readonly string[]> = new Map([
  ['make', MAKEFILES],
  ['gmake', MAKEFILES],
  ['just', ['justfile', 'Justfile', '.justfile']],
  ['rake', ['Rakefile', 'rakefile']],
  ['task', ['Taskfile.yml', 'Taskfile.yaml']],
  ['nox', ['noxfile.py']],
  ['tox', ['tox.ini']],
])

/** A path in the work directory, without special characters of globs or shells. */
const PLAIN_PATH = /^(?![/~])(?!.*(?:^|\/)\.\.(?:\/|$))[\w@+.,/ -]*[\w@+-]$/

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
