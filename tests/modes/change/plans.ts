import fc from 'fast-check'
import { type Plan, readPlan } from '../../../src/modes/change/plan.ts'
import { planProblem } from '../../../src/modes/change/plan-rules.ts'

/** A plan that can be carried out. */
export const PLAN: Plan = {
  description: 'Limit requests.\n\n1. Count them by address.\n2. Answer 429.',
  files: [
    { path: 'src/limit.ts', change: 'new: counts requests' },
    { path: 'src/server.ts', change: 'asks it before it answers' },
  ],
  risks: ['Proxies share an address.'],
  verification: [{ run: 'npm test', why: 'the tests of the server, with one for the limit' }],
  questions: [],
}

/** Texts in which there is all that could be taken for a part of a plan's file. */
export const hostileText = fc.oneof(
  fc.string({ maxLength: 200, unit: 'binary' }),
  fc
    .array(
      fc.constantFrom(
        ...[
          '# Plan',
          '## Files',
          '## Risks',
          '##  verification',
          '## Questions',
          '---',
          '```',
          '````sh',
          '- `a`: b',
          '- ',
          '* x',
        ],
        ...[
          '  indented',
          '\tby a tab',
          '',
          ' ',
          '*None.*',
          'None.',
          '1. first',
          '<!-- x -->',
          '`',
          '``',
          '`npm test`: x',
          'version: 9',
        ],
        ...[
          '增加限流：每分钟十次',
          'ÄÖÜ',
          '🙂',
          '{"description":"x"}',
          '{{directory}}',
          '[begin x]',
          '> quoted',
          '\\',
          '| a | b |',
          ': x',
        ],
      ),
      { maxLength: 12 },
    )
    .chain(lines => fc.constantFrom('\n', '\r\n', '\r', ' ', '\n\n').map(end => lines.join(end))),
)

const path = fc.oneof(
  fc.constantFrom(
    'src/a.ts',
    'docs/说明.md',
    'a b/c d.txt',
    'a`b',
    '`',
    '``a``',
    '- x',
    'a: b',
    'README.md',
    '.github/x.yml',
    'x:',
  ),
  fc.string({ maxLength: 30 }).map(text => `x${text}`),
)
const run = fc.constantFrom(
  ...[
    'npm test',
    'grep -q "`" a.txt',
    'node -e \'require("./a")\'',
    'grep -q ":" a',
    'make check',
    'test "$(`x`)" = y',
    'npm test # ``',
  ],
)

/** Any plan that can be carried out. */
export const plans = fc
  .record({
    description: hostileText,
    files: fc.array(fc.record({ path, change: hostileText }), { maxLength: 6 }),
    risks: fc.array(hostileText, { maxLength: 4 }),
    verification: fc.array(fc.record({ run, why: hostileText }), { maxLength: 4 }),
    questions: fc.array(hostileText, { maxLength: 4 }),
  })
  .filter(plan => planProblem(plan) === null)
  .map(readPlan)
  .filter(read => read.ok)
  .map(read => read.value)
