import fc from 'fast-check'
import { load } from 'js-yaml'
import { describe, expect, test } from 'vitest'
import { hashOfPlan, type Plan, readPlan } from '../../../src/modes/change/plan.ts'
import { planChanges } from '../../../src/modes/change/plan-changes.ts'
import { mistakesOf } from '../../../src/modes/change/plan-rules.ts'
import { type PlanHead, planDiff, planMarkdown, planText, readPlanText } from '../../../src/modes/change/plan-text.ts'
import { promise } from '../../support/promise.ts'
import { hostileText, PLAN, plans } from './plans.ts'

function headOf(plan: Plan, feedback: string | null = null): PlanHead {
  return { version: 2, author: 'planner', feedback, plan, sha256: hashOfPlan(plan) }
}

function problemIn(text: string): string {
  const read = readPlanText(text, mistakesOf)
  return read.ok ? 'it can be read' : read.problem
}

describe('the file of a plan', () => {
  test('is headed by version, author, feedback and hash, and reads as Markdown', () => {
    const text = planText(headOf(PLAN, 'Use Redis:\n"not" memory # 测试'))
    const [, front = '', content = ''] = /^---\n(.*?)\n---\n(.*)$/s.exec(text) ?? []
    expect(load(front)).toEqual({
      version: 2,
      author: 'planner',
      feedback: 'Use Redis:\n"not" memory # 测试',
      sha256: hashOfPlan(PLAN),
    })
    expect(content.trim()).toBe(
      [
        '# Plan',
        '',
        'Limit requests.',
        '',
        '1. Count them by address.',
        '2. Answer 429.',
        '',
        '## Files',
        '',
        '- `src/limit.ts`: new: counts requests',
        '- `src/server.ts`: asks it before it answers',
        '',
        '## Risks',
        '',
        '- Proxies share an address.',
        '',
        '## Verification',
        '',
        '- `npm test`: the tests of the server, with one for the limit',
        '',
        '## Questions',
        '',
        '*None.*',
      ].join('\n'),
    )
    expect(planMarkdown(PLAN).trim()).toBe(content.trim())
  })

  promise(
    'C22',
    'The file of a plan is read as the plan that it was written from, whatever stands in it; what a person made of it is read, or refused with the line',
  )
  test('is read as the plan that it was written from, whatever stands in it', () => {
    fc.assert(
      fc.property(plans, fc.option(hostileText), (plan, feedback) => {
        const text = planText(headOf(plan, feedback))
        expect(readPlanText(text)).toEqual({ ok: true, value: plan })
        expect(readPlanText(text.replaceAll('\n', '\r\n'))).toEqual({ ok: true, value: plan })
        expect(readPlanText(`\uFEFF${text}`)).toEqual({ ok: true, value: plan })
        expect(readPlanText(planMarkdown(plan))).toEqual({ ok: true, value: plan })
      }),
    )
  })

  test.each([
    ['30,000 characters', '长'.repeat(8_000).concat('a bc\n'.repeat(4_400))],
    [
      'its own headings',
      '## Files\n\n- `x`: y\n\n## Risks\n\n## Verification\n\n- `true`: x\n\n## Questions\n\n# Plan',
    ],
    ['its own file', planText(headOf(PLAN))],
    ['code in fences', '```sh\n## Files\n- `a`\n```\n\n~~~\n---\n~~~'],
    ['front matter', '---\nversion: 9\nsha256: x\n---\n\nText.'],
    ['code that is indented', 'Text:\n\n    ## Files\n    - x\n\n\tby a tab'],
    ['hard line breaks', 'One  \ntwo\\\nthree'],
  ])('holds a description of %s', (_, description) => {
    const read = readPlan({
      ...PLAN,
      description,
      risks: [description.slice(0, 3_000)],
      questions: ['`a`: b', '- c\n- d'],
    })
    if (!read.ok) throw new Error(read.problem)
    expect(readPlanText(planText(headOf(read.value)))).toEqual(read)
  })
})

describe('a plan that a person edited', () => {
  const text = planText(headOf(PLAN))

  test('may have other entries, other signs before them, and no front matter', () => {
    const edited = planMarkdown(PLAN)
      .replace(
        '- `src/server.ts`: asks it before it answers',
        '* src/server.ts: asks it\n  first\n\n1. `src/new.ts`\n- `docs/a b.md` — says so',
      )
      .replace('- `npm test`: the tests of the server, with one for the limit', '+ `npm test`\n- `npm run lint` style')
      .replace('*None.*', '- Which store?\n\n  Redis, perhaps.')
    expect(readPlanText(edited)).toEqual({
      ok: true,
      value: {
        ...PLAN,
        files: [
          { path: 'src/limit.ts', change: 'new: counts requests' },
          { path: 'src/server.ts', change: 'asks it\nfirst' },
          { path: 'src/new.ts', change: '' },
          { path: 'docs/a b.md', change: 'says so' },
        ],
        verification: [
          { run: 'npm test', why: '' },
          { run: 'npm run lint', why: 'style' },
        ],
        questions: ['Which store?\n\nRedis, perhaps.'],
      },
    })
  })

  test('may have no entries at all', () => {
    const edited = '# Plan\n\nDo it.\n\n## Files\n## Risks ##\nnone\n## VERIFICATION\n## Questions'
    expect(readPlanText(edited)).toEqual({
      ok: true,
      value: { description: 'Do it.', files: [], risks: [], verification: [], questions: [] },
    })
  })

  promise('C22')
  test.each([
    ['an empty file', '', /^There is no line "## Questions" at the end; keep the headings in this order/],
    ['another text', 'lol\n'.repeat(50), /^There is no line "## Questions"/],
    ['a shopping list', '- milk\n- eggs', /^There is no line/],
    ['JSON', JSON.stringify(PLAN), /^There is no line/],
    ['bytes', '\u0000\u0001\uFFFD'.repeat(100), /^There is no line/],
    ['5 MB', 'x'.repeat(5_000_000), /^The file has 5000000 characters; 262144 are the most/],
    ['front matter without end', '---\nversion: 1\n\n# Plan\n', /^Line 1: the front matter has no end/],
    ['no heading of the files', text.replace('## Files', '## Dateien'), /^There is no line "## Files" above line \d+/],
    [
      'headings in another order',
      text.replace('## Risks', '## X').replace('## Questions', '## Risks'),
      /^There is no line "## Questions"/,
    ],
    [
      'no description',
      text.replace(/# Plan[\s\S]*## Files/, '# Plan\n\n## Files'),
      /^The description is empty; say what/,
    ],
    [
      'prose among the files',
      text.replace('- `src/server.ts`', 'And `src/server.ts`'),
      /^Line 18: "And `src\/server\.ts`: asks it before it answers" is not a list entry/,
    ],
    [
      'a command without backticks',
      text.replace('`npm test`', 'npm test'),
      /^Line 26: this entry must begin with a command between backticks, such as "- `npm test`/,
    ],
    ['a weak command', text.replace('`npm test`', '`exit 0`'), /^Line 26: the command proves nothing: it succeeds/],
    ['sudo', text.replace('`npm test`', '`sudo npm test`'), /^Line 26: the command uses `sudo`/],
    ['prose as a command', text.replace('`npm test`', '`Check that it works`'), /^Line 26: the command is a sentence/],
    [
      'a path that leads out',
      text.replace('`src/server.ts`', '`../server.ts`'),
      /^Line 18: the path is "\.\.\/server\.ts", which leads out/,
    ],
    [
      'an absolute path',
      text.replace('`src/limit.ts`', '/etc/passwd'),
      /^Line 17: the path is "\/etc\/passwd", an absolute path/,
    ],
    [
      '300 files',
      text.replace('- `src/limit.ts`', `${'- `a.ts`: x\n'.repeat(300)}- \`src/limit.ts\``),
      /^The files has 302 entries; 200 are the most/,
    ],
  ])('and that cannot be read is said with the line: %s', (_, edited, problem) => {
    expect(problemIn(edited)).toMatch(problem)
  })

  test('is read or refused, and never throws, whatever was made of it', () => {
    const line = fc.nat(40)
    fc.assert(
      fc.property(plans, fc.array(fc.tuple(line, line, hostileText), { maxLength: 4 }), (plan, edits) => {
        const lines = planText(headOf(plan)).split('\n')
        for (const [at, many, put] of edits) lines.splice(at, many, put)
        const read = readPlanText(lines.join('\n'), mistakesOf)
        if (read.ok) expect(readPlanText(planText(headOf(read.value)))).toEqual(read)
        else expect(read.problem).not.toBe('')
      }),
    )
  })
})

describe('what is different between two versions', () => {
  test('is a diff of their texts, without what codemachine knows of them', () => {
    const after = { ...PLAN, risks: [...PLAN.risks, 'Clocks.'], description: `${PLAN.description}\n3. Log it.` }
    expect(planDiff(PLAN, after)).toBe(
      [
        '--- plan',
        '+++ plan',
        '@@ -4,6 +4,7 @@',
        ' ',
        ' 1. Count them by address.',
        ' 2. Answer 429.',
        '+3. Log it.',
        ' ',
        ' ## Files',
        ' ',
        '@@ -13,6 +14,7 @@',
        ' ## Risks',
        ' ',
        ' - Proxies share an address.',
        '+- Clocks.',
        ' ',
        ' ## Verification',
        ' ',
        '',
      ].join('\n'),
    )
    expect(planDiff(PLAN, { ...PLAN })).toBe('')
  })

  test('is told in words: steps by their numbers, files and checks by their names', () => {
    const after = {
      ...PLAN,
      description: PLAN.description.replace('2. Answer 429.', '2. Log it.\n3. Answer 503.'),
      risks: ['Clocks.'],
    }
    expect(planChanges(PLAN, after)).toEqual([
      'Step 2: Log it.',
      'Added step 3: Answer 503.',
      'Added risk: Clocks.',
      ...PLAN.risks.map(risk => `Removed risk: ${risk}`),
    ])
    const moved = { ...PLAN, description: PLAN.description.replace('2. Answer 429.', '2. Log it.\n3. Answer 429.') }
    expect(planChanges(PLAN, moved)).toEqual(['Added step 2: Log it.'])
    expect(planChanges(moved, PLAN)).toEqual(['Removed step 2: Log it.'])
    expect(planChanges(PLAN, { ...PLAN, files: [] })).toEqual(
      PLAN.files.map(({ path, change }) => `Removed file \`${path}\`: ${change}`),
    )
    expect(planChanges(PLAN, { ...PLAN })).toEqual([])
  })

  test('is bounded, where all is different', () => {
    const long = (word: string) => ({
      ...PLAN,
      description: Array.from({ length: 3_000 }, (_, at) => `${word} ${at}`).join('\n'),
    })
    const began = performance.now()
    expect(planDiff(long('a'), long('b')).length).toBeLessThan(17_000)
    expect(performance.now() - began).toBeLessThan(5_000)
  })
})
