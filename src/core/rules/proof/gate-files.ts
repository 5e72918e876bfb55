// Which files a gate runs through by their names. Paths are relative to the work directory, with `/`.

/** Whether a file of this name configures a test runner, in whatever folder it lies. */
export function isTestRunnerConfig(path: string): boolean {
  return RUNNER_CONFIG.test(nameOf(path))
}

/** File names of test runner configuration. */
const RUNNER_CONFIG =
  /^(?:conftest\.py|\.?pytest\.ini|tox\.ini|setup\.cfg|\.coveragerc|nose2?\.cfg|unittest\.cfg|(?:vitest|vite|jest|playwright|cypress|karma|wdio|ava|jasmine|mocha|web-test-runner|cucumber)[\w.-]*\.(?:config|workspace|setup|conf)\.\w+|\.mocharc(?:\.\w+)?|\.(?:nycrc|taprc|c8rc)(?:\.\w+)?|\.rspec|(?:spec|rails|test)_helper\.rb|phpunit(?:\.dist)?\.xml(?:\.dist)?|codeception\.ya?ml|junit-platform\.properties|testng\.xml|nextest\.toml|.+\.runsettings|xunit\.runner\.json|dart_test\.yaml|\.busted|test_helper\.exs)$/i

/**
 * Whether what a gate starts may run through this file, whatever it tests: configuration of package managers, test runners,
 * interpreters and git attributes, makefiles, and what is found first on an `npm` script's PATH.
 */
export function isGateConfiguration(path: string): boolean {
  return isTestRunnerConfig(path) || RUN_THROUGH.test(nameOf(path)) || RUN_THROUGH_BELOW.test(path)
}

const RUN_THROUGH =
  /^(?:\.npmrc|\.yarnrc(?:\.yml)?|\.pnpmfile\.[cm]?js|pnpm-workspace\.yaml|bunfig\.toml|(?:site|user)customize\.py|.+\.pth|noxfile\.py|(?:gnu)?makefile|.+\.mk|\.?justfile|rakefile|taskfile\.ya?ml|rust-toolchain(?:\.toml)?|\.gitattributes|\.envrc|\.proverc)$/i
const RUN_THROUGH_BELOW =
  /(?:^|\/)(?:\.cargo\/config(?:\.toml)?|\.mvn\/[^/]+|\.bundle\/config|node_modules\/\.bin\/[^/]+)$/i

/** Configuration at the top that counts where git ignores it, too: a list of tokens such as `.npmrc` is often ignored. */
export const TOP_CONFIGURATION: readonly string[] = [
  ...['.npmrc', '.yarnrc', '.yarnrc.yml', '.pnpmfile.cjs', '.pnpmfile.mjs', 'pnpm-workspace.yaml', 'bunfig.toml'],
  ...['GNUmakefile', 'makefile', 'Makefile', 'conftest.py', 'pytest.ini', 'sitecustomize.py', 'usercustomize.py'],
  ...['.cargo/config.toml', '.cargo/config', '.gitattributes', '.envrc'],
]

/**
 * The globs of what is looked at for these gates, be it ignored or not: what they protect, and if they do, `TOP_CONFIGURATION`.
 * @param addsGates whether others may come that do
 */
export function globsLookedAt(gates: readonly { protect: readonly string[] }[], addsGates = false): string[] {
  const globs = gates.flatMap(({ protect }) => protect)
  return globs.length === 0 && !addsGates ? [] : [...globs, ...TOP_CONFIGURATION]
}

/**
 * Whether a gate may run through this file by its place and name, be it changed or new: a test, a fixture or snapshot of
 * tests, settings of a tool, a manifest that names scripts. Pure.
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
 * The names by which the command of a gate finds something without a path: the programs that it runs, the targets of
 * `make`, the test runners of `-m`. A file or folder of such a name at the top may be found in the place of what is meant.
 * @param run a line for a shell
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
 * The files that the command of a gate executes by their path: `./run-tests`, `bash scripts/test.sh`, `. ./env.sh`,
 * `node check.js`.
 * @param run a line for a shell
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
 * The files that a script or makefile takes into its own text, as written: `. ./env.sh`, `source lib/check.sh`,
 * `include config.mk`. Of `$(dirname "$0")/lib.sh` and the like, what follows the variable.
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
/** `$(dirname "$0")/` and the like. */
const HERE = /\$\([^()\n]{0,200}\)\/+/g
const MOST_INCLUDED = 200

const SHELLS = new Set(['sh', 'bash', 'dash', 'zsh'])
const INTERPRETERS =
  /^(?:\.|source|sh|bash|dash|zsh|ksh|fish|pwsh|node|deno|bun|tsx|ts-node|python[\d.]*|ruby|perl|php|lua|Rscript)$/

/** Whether a file is what an install writes when it changes what is installed. */
export function isLockFile(path: string): boolean {
  return /^(?:package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?)$/.test(nameOf(path))
}

/** Whether a file says which packages of Python are installed. */
export function isPythonLockFile(path: string): boolean {
  return /^(?:(?:poetry|uv|pdm)\.lock|Pipfile\.lock|requirements[\w.-]*\.txt)$/.test(nameOf(path))
}

/** Whether a file is a test by its name: `a.test.ts`, `test_a.py`, `ATest.java`, `a.bats`, a snapshot of such. */
export function isTestByName(path: string): boolean {
  return TEST_NAME.test(nameOf(path))
}

const TEST_NAME =
  /^(?:tests?|spec)[._-]|[._-](?:tests?|spec|cy|e2e|it)[._-]|[A-Za-z\d](?:Tests?|Spec)\.|[a-z\d]IT\.|^Test[A-Z]|\.(?:bats|t|feature|snap)$/

/**
 * The files that the command of a gate runs by itself: the makefiles of `make`, likewise of its like, and each configuration
 * file that it names.
 * @param run a line for a shell
 */
export function ownFilesOf(run: string): string[] {
  let folder = ''
  const files: string[] = []
  for (const words of commandsOf(run)) {
    const [program, target = ''] = words
    // What a `cd` of another line of its own, or in brackets, leads to is not followed back.
    if (program === 'cd') folder = `${folder}${target.replace(/\/*$/, '/')}`
    else files.push(...filesOfCommand(words, folder))
  }
  return [...new Set(files)]
}

/** The words of each command of a line, without quotes. */
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

/** `--file=ci.mk` as two words. */
function flagAndValue(word: string): string[] {
  const [, flag, value] = /^(--?\w[\w-]*)=(.*)$/.exec(word) ?? []
  return flag === undefined || value === undefined ? [word] : [flag, value]
}

/** `CI=1 timeout 60 make`, `nice -n 10 make`, `bash -c "make"`: what stands before the program, where all before it does. */
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

/** A path in the work directory, without what is special in a glob or in a shell. */
const PLAIN_PATH = /^(?![/~])(?!.*(?:^|\/)\.\.(?:\/|$))[\w@+.,/ -]*[\w@+-]$/

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
