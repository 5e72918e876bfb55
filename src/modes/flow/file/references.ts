import { nearestName, truncate } from '../../../base/text.ts'
import {
  type Comparison,
  type Condition,
  type Connector,
  OPERATORS,
  type Reference,
  type StepPart,
  type TemplatePart,
} from './plan.ts'

/** References of a template or condition, and their problems; `offset`: character index in the text. */
export interface References {
  references: readonly { reference: Reference; offset: number }[]
  /** Sentences without their ends. */
  problems: readonly { problem: string; offset: number }[]
}

/** Returns whether a variable can have this name: letters, digits, `_`, `-`, first a letter or `_`; not `steps`. */
export function isVariableName(name: string): boolean {
  return VARIABLE.test(name) && name !== STEPS
}

/** Rule for a variable's name: completes `use …`. */
export const VARIABLE_NAME =
  'a name of at most 100 letters, digits, "_" and "-" that begins with a letter, and is not "steps"'

const VARIABLE = /^[\p{L}_][\p{L}\p{M}\p{N}_-]{0,99}$/u
const STEPS = 'steps'
const PARTS = ['output', 'answer', 'exit'] as const satisfies readonly StepPart[]
const HOW = 'write {{NAME}}, {{steps.ID.output}}, {{steps.ID.answer.FIELD}} or {{steps.ID.exit}}'

/** Cuts a template into text and references; anything else between `{{` and `}}` is a problem. */
export function parseTemplate(text: string): References & { parts: readonly TemplatePart[] } {
  const parts: TemplatePart[] = []
  const references: { reference: Reference; offset: number }[] = []
  const problems: { problem: string; offset: number }[] = []
  let from = 0
  for (let open = text.indexOf('{{'); open !== -1; open = text.indexOf('{{', from)) {
    const close = text.indexOf('}}', open)
    if (close === -1) {
      problems.push({ problem: `there is no }} for this {{; ${HOW}`, offset: open })
      break
    }
    if (open > from) parts.push(text.slice(from, open))
    const read = parseReference(text.slice(open + 2, close))
    if ('problem' in read) problems.push({ problem: read.problem, offset: open })
    else {
      parts.push(read.reference)
      references.push({ reference: read.reference, offset: open })
    }
    from = close + 2
  }
  return { parts: from < text.length ? [...parts, text.slice(from)] : parts, references, problems }
}

/** Returns the first `{{…}}` in a text that would name a value; null: none. Ignores `{{.Names}}` of other programs. */
export function firstReference(text: string): string | null {
  for (const [reference, inner = ''] of text.matchAll(/\{\{([^{}]{1,300})\}\}/g)) {
    if ('reference' in parseReference(inner)) return reference
  }
  return null
}

/** Parses the text between `{{` and `}}`. */
function parseReference(inner: string): { reference: Reference } | { problem: string } {
  const name = inner.trim()
  const [first = '', step = '', part, ...field] = name.split('.')
  if (isVariableName(name)) return { reference: { variable: name } }
  const shown = `"{{${truncate(name.replace(/[\s\p{Cc}]+/gu, ' '), 60)}}}"`
  if (first !== STEPS || step === '' || part === undefined) return { problem: `${shown} names no value; ${HOW}` }
  const known = PARTS.find(each => each === part)
  if (known === undefined) {
    const near = nearestName(part, PARTS)
    const mend = near === null ? 'use output, answer or exit' : `the nearest is "${near}"`
    return { problem: `${shown}: a step has no ${JSON.stringify(part.slice(0, 60))}; ${mend}` }
  }
  if (known !== 'answer' && field.length > 0) {
    return {
      problem: `${shown}: ${known} has no fields; use steps.${step}.answer.${field.join('.')} or leave them out`,
    }
  }
  if (field.some(each => each.trim() === '')) return { problem: `${shown} has a field without a name; ${HOW}` }
  return { reference: { step, part: known, field } }
}

/**
 * Parses `when`: comparisons with `and` or `or` between them. Each compares two values, at least one of them a reference.
 */
export function parseCondition(text: string): References & { condition: Condition | null } {
  const first = parseComparison(text, 0)
  if ('problem' in first) return { condition: null, references: [], problems: [first] }
  const references = [...first.references]
  const more: (Comparison & { by: Connector })[] = []
  for (let end = first.end; text.slice(end).trim() !== ''; ) {
    const connector = CONNECTOR.exec(text.slice(end))
    const next = connector === null ? wrongRest(text, end) : parseComparison(text, end + connector[0].length)
    if ('problem' in next) return { condition: null, references: [], problems: [next] }
    more.push({ by: connector?.[1] === 'or' ? 'or' : 'and', ...next.comparison })
    references.push(...next.references)
    end = next.end
  }
  const condition = { text, ...first.comparison, ...(more.length === 0 ? {} : { more }) }
  return { condition, references, problems: [] }
}

const CONNECTOR = /^\s+(and|or)\b/
const OPERATOR = /^\s*([=!<>]+|contains\b|)/

interface Problem {
  problem: string
  offset: number
}

function wrongRest(text: string, end: number): Problem {
  const rest = text.slice(end)
  const shown = JSON.stringify(rest.trim().slice(0, 60))
  return {
    problem: `only "and" or "or" can follow a comparison; leave out ${shown}, or put a text of several words in quotes`,
    offset: end + rest.search(/\S/),
  }
}

/** Parses one comparison from an index on. `end`: index behind it. */
function parseComparison(
  text: string,
  from: number,
): { comparison: Comparison; references: References['references']; end: number } | Problem {
  const left = parseSide(text, from)
  if ('problem' in left) return left
  const operator = OPERATOR.exec(text.slice(left.end))
  const at = left.end + (operator?.index ?? 0)
  const known = OPERATORS.find(each => each === operator?.[1])
  if (known === undefined) {
    const written = operator?.[1] ?? ''
    const wrong = written === '' ? 'there is no comparison' : `${written} is no comparison`
    const problem = `${wrong}; write one of ${OPERATORS.join(', ')}, as in ${EXAMPLE}`
    return { problem, offset: Math.min(at, text.length) }
  }
  const right = parseSide(text, left.end + (operator?.[0].length ?? 0))
  if ('problem' in right) return right
  const references = [left, right].flatMap(({ part, offset }) =>
    typeof part === 'string' ? [] : [{ reference: part, offset }],
  )
  const output = references.find(({ reference }) => 'step' in reference && reference.part === 'output')
  if (references.length === 0)
    return { problem: `it compares two fixed texts; use a reference, as in ${EXAMPLE}`, offset: left.offset }
  if (output !== undefined) {
    return {
      problem:
        'an output cannot be compared, because it is too long; use steps.ID.exit, or steps.ID.answer.FIELD of a step with a schema',
      offset: output.offset,
    }
  }
  return { comparison: { left: left.part, operator: known, right: right.part }, references, end: right.end }
}

const EXAMPLE = '"{{steps.test.exit}} != 0"'

interface Side {
  part: TemplatePart
  /** Its start and end. */
  offset: number
  end: number
}

/** Parses one side of a comparison from an index on: a reference, a quoted text or a word. */
function parseSide(text: string, from: number): Side | Problem {
  const offset = from + text.slice(from).search(/\S|$/)
  const rest = text.slice(offset)
  const [reference, inner] = /^\{\{([^{}]*)\}\}/.exec(rest) ?? []
  if (reference !== undefined) {
    const read = parseReference(inner ?? '')
    if ('problem' in read) return { problem: read.problem, offset }
    return { part: read.reference, offset, end: offset + reference.length }
  }
  if (rest.startsWith('{{')) return { problem: `there is no }} for this {{; ${HOW}`, offset }
  const [quoted] = /^(?:"[^"]*"|'[^']*')/.exec(rest) ?? []
  if (quoted !== undefined) return { part: quoted.slice(1, -1), offset, end: offset + quoted.length }
  const [word] = /^[^\s=!<>"'{}]+/.exec(rest) ?? []
  if (word !== undefined) return { part: word, offset, end: offset + word.length }
  return { problem: `a value is missing here; write both, as in ${EXAMPLE} (an empty text is '')`, offset }
}
