import picomatch from 'picomatch'

/** What some globs protect; names in any script are compared as Unicode composes them. */
export interface ProtectedGlobs {
  /** Whether a path is protected: relative to the work directory, composed. */
  covers(path: string): boolean
  /** Those that are names, and no patterns. */
  names: ReadonlySet<string>
  /** The folders, or names, below which all that they protect lies; '' is the work directory. */
  bases: readonly string[]
}

/** Reads globs relative to the work directory, or names of files and of folders with all in them. */
export function protectedGlobs(globs: readonly string[]): ProtectedGlobs {
  const composed = globs.map(glob => glob.normalize())
  const matchers = composed.map(matcherOf)
  const bases = new Set(
    composed.map(glob => picomatch.scan(glob)).map(({ base, isGlob, input }) => (isGlob ? base : input)),
  )
  return {
    covers: path => matchers.some(matches => matches(path)),
    names: new Set(composed.filter(glob => !picomatch.scan(glob).isGlob)),
    bases: [...bases].filter(base => ![...bases].some(other => other !== base && isBelow(base, other))),
  }
}

/** Whether a runner of tests takes its settings from a file of this name, wherever it finds it. */
export function configuresRunner(path: string): boolean {
  return RUNNER_CONFIG.test(path.slice(path.lastIndexOf('/') + 1))
}

/** Whether a glob may cover more than tests: a name, or settings of a test runner. */
export function coversMoreThanTests(glob: string): boolean {
  return !picomatch.scan(glob).isGlob || !/\*[._-](?:test|spec)s?\.(?:\w+|\{[\w,]+\})$/.test(glob)
}

/** Whether one path is in the folder that another names; '' is the folder of all. */
export function isBelow(path: string, folder: string): boolean {
  return folder === '' || path.startsWith(`${folder}/`)
}

function matcherOf(glob: string): (path: string) => boolean {
  const isMatch = picomatch(endsInName(glob) ? [glob, `${glob}/**`] : glob, options)
  // A name may have characters in it that mean something in a glob.
  return path => path === glob || path.startsWith(`${glob}/`) || isMatch(path)
}

/** Whether it may name a folder: its last part has no wildcard. */
function endsInName(glob: string): boolean {
  return !picomatch.scan(glob.slice(glob.lastIndexOf('/') + 1)).isGlob
}

/** Files by which a runner of tests takes its settings from where it finds them. */
const RUNNER_CONFIG =
  /^(?:conftest\.py|\.?pytest\.ini|tox\.ini|setup\.cfg|\.coveragerc|nose2?\.cfg|unittest\.cfg|(?:vitest|vite|jest|playwright|cypress|karma|wdio|ava|jasmine|mocha|web-test-runner|cucumber)[\w.-]*\.(?:config|workspace|setup|conf)\.\w+|\.mocharc(?:\.\w+)?|\.(?:nycrc|taprc|c8rc)(?:\.\w+)?|\.rspec|(?:spec|rails|test)_helper\.rb|phpunit(?:\.dist)?\.xml(?:\.dist)?|codeception\.ya?ml|junit-platform\.properties|testng\.xml|nextest\.toml|.+\.runsettings|xunit\.runner\.json|dart_test\.yaml|\.busted|test_helper\.exs)$/i

const options = { dot: true, nonegate: true, windows: false }
