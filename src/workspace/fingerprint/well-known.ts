/**
 * Names of folders with dependencies and caches, never a round's work: omitted once ignored. Only a file that is named in
 * them counts (`exceptionRules`), because the rest changes with every run.
 */
const DEPENDENCIES_AND_CACHES = [
  ...'node_modules bower_components jspm_packages web_modules .yarn .npm .pnpm-store'.split(' '),
  ...'.venv venv env __pycache__ __pypackages__ .eggs *.egg-info .tox .nox .hypothesis'.split(' '),
  ...'.pytest_cache .mypy_cache .ruff_cache .pyre .pytype .ipynb_checkpoints .pybuilder'.split(' '),
  ...'vendor .bundle .sass-cache Pods DerivedData .dart_tool .pub-cache .stack-work elm-stuff'.split(' '),
  ...'target .gradle .mtj.tmp .terraform .serverless .vscode-test .angular .expo .turbo .nx'.split(' '),
  ...'.cache .parcel-cache .rpt2_cache .rts2_cache_* .fusebox .docusaurus .temp .tmp tmp'.split(' '),
]

/** Names of folders with output of builds, tests and programs. A folder with a named file counts as a whole. */
const OUTPUT = [
  ...'dist build out bin obj _build _site storybook-static debug cmake-build-*'.split(' '),
  ...'.next .nuxt .output .svelte-kit sdist wheels mutants.out* dist-newstyle'.split(' '),
  ...'coverage htmlcov cover lib-cov .nyc_output test-results playwright-report logs'.split(' '),
]

/** Names of files written by compilers, test runners and programs. */
const WRITTEN_FILES = [
  ...'*.py[cod] *$py.class *.class *.jar *.war *.ear *.nar *.o *.obj *.a *.lib *.so'.split(' '),
  ...'*.dylib *.dll *.exe *.exe~ *.pdb *.wasm *.test *.out *.prof *.egg *.whl *.tgz'.split(' '),
  ...'*.tsbuildinfo *.lcov .coverage .coverage.* coverage.* *.cover *.coverprofile profile.cov'.split(' '),
  ...'*.gcda *.gcno nosetests.xml junit.xml .eslintcache .stylelintcache *.rs.bk *.log'.split(' '),
  ...'npm-debug.log* pip-log.txt *.pid *.pid.lock *.seed hs_err_pid* replay_pid* .DS_Store'.split(' '),
]

/** True for codex's own path in its home: all except its configuration. */
export function isKeptByCodex(path: string): boolean {
  return !isOneOf(path.split('/', 1)[0] ?? '', CODEX_CONFIGURATION) || `${path}/`.startsWith('skills/.system/')
}

/** Returns a path as text of a rule, with all pattern characters escaped. */
export function literal(path: string): string {
  return path.replace(/[\\*?[\]]/g, '\\$&').replace(/ $/, '\\ ')
}

/**
 * Returns exclude rules for known dependencies, caches and build output. Files named in these texts are exceptions: commands
 * and globs of gates, the goal, later words of a person. Pure.
 * @param directory absolute path of the work directory
 * @param prefix the same relative to git's top, ending in `/`; empty where they are the same
 */
export function exceptionRules(texts: readonly string[], directory: string, prefix: string): string[] {
  const named = namedPaths(texts, directory)
  const folders = new Set<string>()
  const whole = new Set<string>()
  const files = new Set<string>()
  for (const parts of named) {
    const index = parts.findIndex(part => isOneOf(part, FOLDERS))
    files.add(parts.join('/'))
    if (index === -1) continue
    if (isOneOf(parts[index] ?? '', OUTPUT_NAMES)) whole.add(parts.slice(0, index + 1).join('/'))
    // Git does not look into excluded folders: include each parent of the file, and exclude all else in it.
    else for (let end = index + 1; end < parts.length; end += 1) folders.add(parts.slice(0, end).join('/'))
  }
  const top = `/${literal(prefix)}`
  const byDepth = [...folders].toSorted((a, b) => a.split('/').length - b.split('/').length)
  return [
    ...[...DEPENDENCIES_AND_CACHES, ...OUTPUT].map(name => `${name}/`),
    ...WRITTEN_FILES,
    ...byDepth.flatMap(folder => [`!${top}${literal(folder)}/`, `${top}${literal(folder)}/*`]),
    ...[...whole].map(folder => `!${top}${literal(folder)}/`),
    ...[...files].map(file => `!${top}${literal(file)}`),
  ]
}

/** Returns the parts of each file path in these texts, relative to the work directory; at most 200. */
function namedPaths(texts: readonly string[], directory: string): string[][] {
  const found = new Map<string, string[]>()
  for (const text of texts) {
    for (const [word] of text.slice(0, TEXT_CHARACTERS).matchAll(/[\p{L}\p{N}_.@+~*/-]+/gu)) {
      const inside = word.startsWith(`${directory}/`) ? word.slice(directory.length + 1) : word
      const parts = inside.split('/').filter(part => part !== '.')
      // Of a glob, only the fixed folder counts.
      const wild = parts.findIndex(part => part.includes('*'))
      const plain = wild === -1 ? parts : [...parts.slice(0, wild), '_']
      const last = (plain.at(-1) ?? '').replace(/\.+$/, '')
      const isPath = plain.every(part => part !== '' && part !== '..') && (plain.length > 1 || last.includes('.'))
      if (!isPath || last === '' || isOneOf(last, FOLDERS)) continue
      const path = [...plain.slice(0, -1), last]
      found.set(path.join('/'), path)
      if (found.size >= MOST_NAMED) return [...found.values()]
    }
  }
  return [...found.values()]
}

interface Names {
  plain: ReadonlySet<string>
  patterns: readonly RegExp[]
}

function isOneOf(name: string, { plain, patterns }: Names): boolean {
  return plain.has(name) || patterns.some(pattern => pattern.test(name))
}

function namesOf(list: readonly string[]): Names {
  const patterns = list.filter(name => name.includes('*'))
  const asRegExp = (name: string) => new RegExp(`^${name.replaceAll('.', '\\.').replaceAll('*', '.*')}$`)
  return { plain: new Set(list.filter(name => !name.includes('*'))), patterns: patterns.map(asRegExp) }
}

const OUTPUT_NAMES = namesOf(OUTPUT)
const FOLDERS = namesOf([...DEPENDENCIES_AND_CACHES, ...OUTPUT])
/** A person's files in codex's home. */
const CODEX_CONFIGURATION = namesOf([
  ...'config.toml *.config.toml AGENTS.md AGENTS.override.md instructions.md'.split(' '),
  ...'prompts skills rules agents hooks hooks.json'.split(' '),
])
const MOST_NAMED = 200
const TEXT_CHARACTERS = 64 * 1024
