import * as v from 'valibot'
import { UserError } from '../../../base/errors.ts'
import { type ContractText, readContract, type Sentence } from '../../../core/rules/contract.ts'
import { parseToml, type TomlSource, tomlNodeAt, tomlString, tomlTree } from '../../../platform/toml.ts'
import { checkToml, line, oneOf, table, wholeNumber } from '../../../platform/toml-check.ts'

const anyText = (description: string) => v.pipe(v.string(), v.description(description))

const KINDS = ['must', 'must-not', 'keep', 'not-checkable', 'context'] as const

const fileSchema = table({
  sentences: v.array(
    table({
      quote: anyText('a text that the goal contains'),
      kind: oneOf(KINDS),
      reason: anyText('a text that says why no check can tell'),
      checks: v.array(
        table({
          run: line('a line for a shell, such as "npm test"'),
          seconds: wholeNumber(1, 600),
          needs: anyText('a text that says what it needs'),
          files: v.array(table({ path: line('a path such as "slug.test.mjs"', 200), text: anyText('a text') })),
        }),
      ),
    }),
  ),
})

/** Returns a contract as TOML for a person to edit. Pure. */
export function contractToml({ sentences }: Pick<ContractText, 'sentences'>): string {
  return `# The goal must contain each quote, word for word. {files} in a command means the folder with the files of its check.\n\n${sentences.map(sentenceToml).join('\n')}`
}

function sentenceToml({ id, quote, kind, reason, checks }: Sentence): string {
  return [
    `# ${id}`,
    '[[sentences]]',
    `quote = ${textToml(quote)}`,
    `kind = ${tomlString(kind)}`,
    ...(reason === null ? [] : [`reason = ${textToml(reason)}`]),
    ...checks.flatMap(({ run, seconds, needs, files }) => [
      '',
      '[[sentences.checks]]',
      `run = ${textToml(run)}`,
      `seconds = ${seconds}`,
      ...(needs === null ? [] : [`needs = ${textToml(needs)}`]),
      ...files.flatMap(({ path, text }) => [
        '',
        '[[sentences.checks.files]]',
        `path = ${textToml(path)}`,
        `text = ${textToml(text)}`,
      ]),
    ]),
    '',
  ].join('\n')
}

/** Returns a multi-line text unescaped if TOML allows that. */
function textToml(text: string): string {
  const isPlain = text.includes('\n') && !text.includes("'''") && !text.endsWith("'") && !/[^\t\n\P{Cc}]/u.test(text)
  return isPlain ? `'''\n${text}'''` : tomlString(text)
}

/** Parses an edited contract. Throws a `UserError` with line and text of the first mistake. Pure. */
export function parseContract(text: string, source: TomlSource, goal: string): ContractText {
  const tree = tomlTree(parseToml(text, source))
  const { value, mistakes } = checkToml(fileSchema, tree)
  const [first] = mistakes
  if (first !== undefined)
    throw new UserError('CM0111', `${source.name}:${first.line}: ${first.place} ${first.problem}.`)
  const sentences = (value.sentences ?? []).map(({ quote = '', kind = 'must', reason = null, checks = [] }) => ({
    quote,
    kind,
    reason,
    checks: checks.map(({ run = '', seconds = 60, needs = null, files = [] }) => ({
      run,
      seconds,
      needs,
      files: files.map(({ path = '', text = '' }) => ({ path, text })),
    })),
  }))
  const read = readContract({ sentences }, goal)
  if (read.ok) return read.value
  const [problem = ''] = read.problem.split('\n')
  const [, number = '1'] = /^S(\d+): /.exec(problem) ?? []
  const at = tomlNodeAt(tree, ['sentences', Number(number) - 1])
  throw new UserError('CM0111', `${source.name}${at === null ? '' : `:${at.line}`}: ${problem.replace(/\.$/, '')}.`)
}
