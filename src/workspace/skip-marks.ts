/**
 * Whether lines of a test file mark tests to be skipped, or others alone to be run, as far as the language of the file
 * has known words for it. Latin1 will do.
 */
export function marksSkipped(path: string, lines: readonly string[]): boolean {
  const pattern = patternOf(path)
  return pattern !== null && lines.some(line => pattern.test(line.slice(0, longestLine)))
}

/** Whether it can be told of such a file. */
export function canMarkSkipped(path: string): boolean {
  return patternOf(path) !== null
}

function patternOf(path: string): RegExp | null {
  const ending = /\.([^./]+)$/.exec(path)?.[1]?.toLowerCase()
  if (ending === undefined) return null
  return MARKS.find(({ endings }) => endings.includes(ending))?.pattern ?? null
}

const longestLine = 2000

const MARKS: readonly { endings: readonly string[]; pattern: RegExp }[] = [
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
