import { globSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Program, parseSync, Visitor } from 'oxc-parser'

/**
 * Prints the size of `src`: files, lines a file, code lines (as Biome formats them; without comments, blank lines and
 * imports), exports, comment lines for each export, functions and the longest of them, and the fullest folders. Nothing
 * limits them: they are looked at. `npm run measure`, in the package's root.
 */

interface Size {
  path: string
  lines: number
  code: number
  comments: number
  exports: number
  functions: { place: string; lines: number }[]
}

const sizes = globSync('src/**/*.{ts,tsx}').map(sizeOf)
const sum = (key: 'lines' | 'code' | 'comments' | 'exports') => sizes.reduce((total, each) => total + each[key], 0)
const sorted = sizes.map(({ lines }) => lines).sort((a, b) => a - b)
const folders = [...Map.groupBy(sizes, ({ path }) => dirname(path))].map(([folder, { length }]) => ({ folder, length }))

console.log(
  `files ${sizes.length}, lines ${sum('lines')}, median ${sorted[sorted.length >> 1]}, longest ${sorted.at(-1)}`,
)
console.log(`code lines ${sum('code')}`)
console.log(
  `exports ${sum('exports')}, comment lines ${sum('comments')}, for each export ${(sum('comments') / sum('exports')).toFixed(2)}`,
)
console.log('the longest:')
for (const { path, lines } of sizes.toSorted((a, b) => b.lines - a.lines).slice(0, 5)) console.log(`  ${path} ${lines}`)
const functions = sizes.flatMap(each => each.functions).sort((a, b) => b.lines - a.lines)
console.log(`functions ${functions.length}, lines: median ${functions[functions.length >> 1]?.lines}, the longest:`)
for (const { place, lines } of functions.slice(0, 5)) console.log(`  ${place} ${lines}`)
console.log('code lines and files of each layer:')
for (const [layer, files] of [...Map.groupBy(sizes, ({ path }) => path.split('/')[1] ?? '')].sort()) {
  console.log(`  ${layer} ${files.reduce((total, { code }) => total + code, 0)} in ${files.length}`)
}
console.log('the fullest folders:')
for (const { folder, length } of folders.toSorted((a, b) => b.length - a.length).slice(0, 5)) {
  console.log(`  ${folder} ${length}`)
}

/** Where each function of a file begins and ends. */
function spansOf(program: Program): { start: number; end: number }[] {
  const spans: { start: number; end: number }[] = []
  const add = ({ start, end }: { start: number; end: number }) => spans.push({ start, end })
  new Visitor({ FunctionDeclaration: add, FunctionExpression: add, ArrowFunctionExpression: add }).visit(program)
  return spans
}

function sizeOf(path: string): Size {
  const text = readFileSync(path, 'utf8')
  const { program, comments, module } = parseSync(path, text)
  const lineOf = lineFinder(text)
  const kinds: ('blank' | 'code' | 'import' | 'comment')[] = text
    .split('\n')
    .map(line => (line.trim() === '' ? 'blank' : 'code'))
  const mark = ({ start, end }: { start: number; end: number }, kind: 'import' | 'comment') => {
    for (let line = lineOf(start); line <= lineOf(end - 1); line += 1) kinds[line] = kind
  }
  for (const node of program.body) if (node.type === 'ImportDeclaration') mark(node, 'import')
  for (const comment of comments) if (isAlone(text, comment)) mark(comment, 'comment')
  return {
    path,
    lines: kinds.length - 1,
    code: kinds.filter(kind => kind === 'code').length,
    comments: kinds.filter(kind => kind === 'comment').length,
    exports: module.staticExports.flatMap(({ entries }) => entries).length,
    functions: spansOf(program).map(({ start, end }) => ({
      place: `${path}:${lineOf(start) + 1}`,
      lines: lineOf(end - 1) - lineOf(start) + 1,
    })),
  }
}

/** True for a comment with nothing but white space before and after it on its lines. */
function isAlone(text: string, { start, end }: { start: number; end: number }): boolean {
  const before = text.slice(text.lastIndexOf('\n', start - 1) + 1, start)
  const after = text.slice(end, (text.indexOf('\n', end) + 1 || text.length + 1) - 1)
  return `${before}${after}`.trim() === ''
}

/** Gives the line, from 0, of an offset. */
function lineFinder(text: string): (offset: number) => number {
  const starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)]
  return offset => starts.findLastIndex(start => start <= offset)
}
