import { describe, expect, test } from 'vitest'
import { parseAnswer } from '../../../src/core/rules/answer.ts'
import { schemaProblem } from '../../../src/core/rules/answer-schema.ts'
import {
  type Finding,
  findingKey,
  NO_REVIEWS,
  REVIEW_SCHEMA,
  type ReviewAnswer,
  readReview,
  splitFindings,
} from '../../../src/core/rules/review.ts'
import { pathInside } from '../../../src/platform/files.ts'
import { promise } from '../../support/promise.ts'

const DIRECTORY = '/work/app'
const FINDING: Finding = {
  severity: 'major',
  file: 'src/parse.ts',
  line: 12,
  problem: 'It crashes on empty input.',
  mend: 'Empty input gives an empty list.',
}

/** The answer that a reviewer wrote; or why it cannot be used. */
function read(written: unknown): ReviewAnswer | { problem: string } {
  const parsed = parseAnswer(typeof written === 'string' ? written : JSON.stringify(written), REVIEW_SCHEMA)
  const problem = parsed.ok ? schemaProblem(parsed.value, REVIEW_SCHEMA) : parsed.problem
  if (!parsed.ok || problem !== null) return { problem: problem ?? '' }
  const answer = readReview(parsed.value, path => pathInside(DIRECTORY, path))
  return answer.ok ? answer.value : { problem: answer.problem }
}
const answer = (...findings: object[]) => ({ verdict: 'findings', summary: 'No.', findings })

describe('the answer of a reviewer', () => {
  test('is read as it was asked for', () => {
    expect(read(answer(FINDING))).toEqual({ verdict: 'findings', summary: 'No.', findings: [FINDING] })
    expect(read({ verdict: 'agreed', summary: 'Good.', findings: [] })).toEqual({
      verdict: 'agreed',
      summary: 'Good.',
      findings: [],
    })
  })

  test.each([
    ['in a fenced block among words', 'Here it is {sic}:\n\n```json\n@\n```\nThat is all {really}.'],
    ['in a fenced block without a language', 'I think: {\n```\n@\n```'],
    ['among words', 'My verdict: @ – as asked.'],
    ['with space around', '\n\n  @\n'],
  ])('is found %s', (_where, text) => {
    const json = JSON.stringify(answer(FINDING), null, 2)
    expect(read(text.replace('@', () => json))).toEqual(answer(FINDING))
  })

  test.each([
    ['nothing at all', '  ', 'is empty'],
    ['words', 'All good, I agree.', 'does not contain the requested JSON'],
    ['half of it', '{"verdict": "agreed", "summary": "', 'ends too early'],
    ['a list', '[]', 'must be an object'],
    [
      'two answers',
      '```json\n{"verdict":"findings","findings":[]}\n```\n```json\n{"verdict":"agreed","findings":[]}\n```',
      '2 JSON objects',
    ],
    ['another verdict', { verdict: 'maybe', summary: '', findings: [] }, 'one of "agreed", "findings"'],
    ['no findings', { verdict: 'agreed', summary: '' }, 'no field "findings"'],
    ['a weight that is none', answer({ ...FINDING, severity: 'BLOCKER' }), '`findings[0].severity` is "BLOCKER"'],
    ['about a line that is none', answer({ ...FINDING, line: '12' }), '`findings[0].line` is "12"'],
    ['about a file that is none', answer(FINDING, { ...FINDING, file: 7 }), '`findings[1].file` is 7'],
    [
      'findings of which one says nothing',
      { ...answer({ ...FINDING, problem: ' ' }), verdict: 'agreed' },
      'does not say',
    ],
    ['a disagreement about nothing', answer(), 'names no finding'],
  ])('that is %s cannot be used, and it is said why', (_what, text, why) => {
    expect(read(text)).toEqual({ problem: expect.stringContaining(why) })
  })

  test('that does not agree does not, however small what it names is', () => {
    expect(read(answer({ ...FINDING, severity: 'minor' }))).toMatchObject({ verdict: 'findings' })
  })

  promise('D12', 'An answer of a reviewer that agrees and names something grave does not agree')
  test('that agrees and names something grave does not agree', () => {
    expect(read({ ...answer(FINDING), verdict: 'agreed' })).toMatchObject({ verdict: 'findings' })
    expect(read({ ...answer({ ...FINDING, severity: 'minor' }), verdict: 'agreed' })).toMatchObject({
      verdict: 'agreed',
    })
  })

  test.each([
    ['src/a.ts', 'src/a.ts'],
    ['./src/../src/a.ts', 'src/a.ts'],
    ['/work/app/src/a.ts', 'src/a.ts'],
    ['/etc/passwd', null],
    ['../other/a.ts', null],
    ['/work/app', null],
    ['..', null],
    ['..a.ts', '..a.ts'],
    ['src/a\u001b[31m.ts', 'src/a[31m.ts'],
    ['', null],
    [null, null],
    ['a'.repeat(5_000), null],
  ])('about the file %j is about %j', (file, expected) => {
    expect(read(answer({ ...FINDING, file }))).toMatchObject({ findings: [{ file: expected }] })
  })

  test.each([0, -3, 2 ** 60, null])('about line %j is about no line', line => {
    expect(read(answer({ ...FINDING, line }))).toMatchObject({ findings: [{ line: null }] })
  })

  test('cannot steer a terminal, and is bounded', () => {
    const hostile = `a\u001b]0;x\u0007\u202e\ud800 b${'x'.repeat(2_500)}`
    const many = Array.from({ length: 80 }, () => ({ ...FINDING, severity: 'minor', problem: hostile }))
    const found = read(answer(...many, { ...FINDING, severity: 'critical' }))
    expect(found).toMatchObject({ verdict: 'findings' })
    if ('problem' in found) throw new Error(found.problem)
    expect(found.findings).toHaveLength(50)
    expect(found.findings[0]?.severity).toBe('critical')
    expect(found.findings[1]?.problem).toMatch(/^a\]0;x\ufffd bx+…$/)
    expect(found.findings[1]?.problem).toHaveLength(2_000)
  })

  test('is asked for with a schema that is strict', () => {
    const objects = [REVIEW_SCHEMA, REVIEW_SCHEMA.properties.findings.items]
    for (const each of objects) {
      expect(each.additionalProperties).toBe(false)
      expect([...each.required].sort()).toEqual(Object.keys(each.properties).sort())
    }
  })
})

describe('a finding', () => {
  const about = (problem: string, more: Partial<Finding> = {}): Finding => ({ ...FINDING, problem, ...more })
  const isRepeated = (before: Finding, now: Finding) =>
    splitFindings({ ...NO_REVIEWS, seen: [findingKey(before)] }, { verdict: 'findings', summary: '', findings: [now] })
      .repeated.length === 1

  test.each([
    ['The parser crashes on empty input.', 'The parser crashes on empty input (line 40).'],
    ['The parser crashes on empty input.', 'parser crashed when the input was empty'],
    ['Tests of `parseUrl` were deleted.', 'The tests for parseUrl have been deleted'],
    ['There is no test for an empty list.', 'No test covers an empty list.'],
    ['解析器在空输入时崩溃', '解析器在空输入时崩溃'],
    ['The function parseUrl crashes on input.', 'The function crashes on input.'],
    ['It is so.', 'it IS so'],
  ])('%j is known again in %j, on whatever line', (before, now) => {
    expect(isRepeated(about(before), about(now, { line: 99, severity: 'critical', mend: 'Otherwise.' }))).toBe(true)
  })

  test.each([
    ['There is no test for the function `parseUrl` here.', 'There is no test for the function `parseDate` here.'],
    ['The parser crashes on empty input.', 'The parser loses the last line of a file without a newline.'],
    ['The parser crashes on empty input.', 'Errors are swallowed.'],
    ['It is so.', 'Or is it not?'],
    ['`a b` crashes on empty input.', '`c` crashes on empty input.'],
  ])('%j is another than %j', (before, now) => {
    expect(isRepeated(about(before), about(now))).toBe(false)
  })

  test('of another file is another', () => {
    expect(isRepeated(FINDING, { ...FINDING, file: 'src/print.ts' })).toBe(false)
    expect(isRepeated(FINDING, { ...FINDING, file: null })).toBe(false)
  })

  test('that is new is told from one that was there before', () => {
    const other = about('Errors are swallowed.')
    const split = splitFindings(
      { ...NO_REVIEWS, seen: [findingKey(FINDING)] },
      { verdict: 'findings', summary: '', findings: [other, FINDING] },
    )
    expect(split).toEqual({ fresh: [other], repeated: [FINDING] })
  })
})
